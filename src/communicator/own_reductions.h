// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "base/own_reduction.h"

namespace khoro {

/// The reductions that were made for one communicator. Thread-safe.
class OwnReductions {
 public:
  /// Their numbers begin here, far from those of the reductions that need not be made. None is
  /// given twice in a process, so that one that was removed, or is another communicator's, is none.
  static constexpr std::uint32_t first = 1u << 16;

  /// Returns its number. Throws `Error`.
  std::uint32_t add(OwnReduction reduction);
  /// Null if there is none of that number. Shared by the calls that use it, which may outlive it
  /// here.
  std::shared_ptr<const OwnReduction> find(std::uint32_t number) const;
  /// False if there was none.
  bool remove(std::uint32_t number);

 private:
  mutable std::mutex mutex_;
  std::map<std::uint32_t, std::shared_ptr<const OwnReduction>> all_;
};

}  // namespace khoro
