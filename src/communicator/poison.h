// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <mutex>
#include <string>

#include "base/error.h"

namespace khoro {

/// Latches why a communicator failed: the first cause wins and never changes. Thread-safe.
class Poison {
 public:
  /// One load; on the way of every call.
  bool latched() const noexcept { return code_.load(std::memory_order_acquire) != Code::success; }
  Code code() const noexcept { return code_.load(std::memory_order_acquire); }

  /// False if another cause was first.
  bool latch(Code code, std::string message) noexcept;

  /// Precondition: latched(). What it refers to is constant from then on.
  const std::string& message() const noexcept { return message_; }

 private:
  std::mutex mutex_;
  std::string message_;
  std::atomic<Code> code_{Code::success};
};

}  // namespace khoro
