// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include "base/error.h"
#include "rendezvous/unique_id.h"

namespace khoro::tool {

/// Whose end is told, and why.
struct Obituary {
  int first_rank = 0;
  int ranks = 0;  // of the job
  std::string text;
};

/// Tells ranks that still wait for each other in khoroCommInitWorld that one of them has ended:
/// nobody else can know of a rank that ended before it came. A process of its own, because it may
/// have to wait for the meeting to open.
class Herald {
 public:
  /// Forks it. Throws `Error`.
  Herald(const Key& key, const Obituary& obituary);
  ~Herald();
  Herald(const Herald&) = delete;
  Herald& operator=(const Herald&) = delete;

 private:
  pid_t process_ = 0;
};

}  // namespace khoro::tool
