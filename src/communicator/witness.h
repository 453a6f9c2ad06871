// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "communicator/rank_page.h"

namespace khoro {

/// Who is told of a communicator's failure beside its ranks, to make the report of it.
class Witness {
 public:
  Witness() = default;
  virtual ~Witness() = default;
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;

  /// By every rank, once, when its communicator has failed on it. Any thread; does not block.
  virtual void failed(const Cause& cause, const std::string& words) noexcept = 0;
};

}  // namespace khoro
