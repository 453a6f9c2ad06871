// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "base/descriptor.h"

namespace khoro {

/// Lets any thread end what another one waits for, once and for good. Thread-safe.
class Interrupt {
 public:
  /// Throws system_error.
  Interrupt();
  void raise() noexcept;
  bool raised() const noexcept { return raised_.load(std::memory_order_acquire); }
  /// Readable from raise() on, for who waits in poll.
  int descriptor() const noexcept { return event_.number(); }

 private:
  Descriptor event_;
  std::atomic<bool> raised_{false};
};

}  // namespace khoro
