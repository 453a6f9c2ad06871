// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "transport/transport.h"

namespace khoro::shm {

#ifdef KHORO_TEST_SWITCHES
/// Plants a race, which tests must find: on the channels of transports that are made from now on,
/// every `period`-th message (0: none) shows its header before its payload; `meanwhile` is called
/// in between. By default that sleeps long enough for any receiver to look.
void publish_early(std::uint64_t period, void (*meanwhile)() noexcept = nullptr) noexcept;

/// The same transport, or, while a race is planted, one whose senders publish too early.
std::unique_ptr<Transport> with_planted_race(std::unique_ptr<Transport> made);
#endif

}  // namespace khoro::shm
