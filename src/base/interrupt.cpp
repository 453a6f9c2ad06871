// SPDX-License-Identifier: Apache-2.0
#include "base/interrupt.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

#include "base/error.h"

namespace khoro {

Interrupt::Interrupt() : event_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (!event_) throw_errno("cannot make an event that ends a wait");
}

void Interrupt::raise() noexcept {
  raised_.store(true, std::memory_order_release);
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto size = ::write(event_.number(), &one, sizeof one);
}

}  // namespace khoro
