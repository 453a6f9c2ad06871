// SPDX-License-Identifier: Apache-2.0

// Plants, in a program of internal tests, the faults that the environment asks for, so that tests
// which are there to find them can be seen to fail.
#ifdef KHORO_TEST_SWITCHES
#include <cstdlib>
#include <thread>

#include "base/doorbell.h"
#include "support/virtual_system.h"
#include "transport/shm/planted_race.h"

namespace {

/// Another rank comes first: in a virtual world at once, else after some time.
void let_others_look() noexcept {
  if (auto* system = khoro::test::VirtualSystem::of_thread(); system != nullptr)
    system->yield();
  else
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// Not by the settings, which warn of unknown names once a process: tests want to see that.
std::uint64_t number(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? 0 : std::strtoull(value, nullptr, 10);
}

[[maybe_unused]] const bool planted = [] {
  khoro::lose_wakeups(number("KHORO_TEST_LOSE_WAKEUP"));
  khoro::shm::publish_early(number("KHORO_TEST_PUBLISH_EARLY"), &let_others_look);
  return true;
}();

}  // namespace
#endif
