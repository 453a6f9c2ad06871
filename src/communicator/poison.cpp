// SPDX-License-Identifier: Apache-2.0
#include "communicator/poison.h"

#include <utility>

namespace khoro {

bool Poison::latch(Code code, std::string message) noexcept {
  const std::lock_guard lock(mutex_);
  if (latched()) return false;
  message_ = std::move(message);
  code_.store(code, std::memory_order_release);  // pairs with latched()
  return true;
}

}  // namespace khoro
