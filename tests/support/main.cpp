// SPDX-License-Identifier: Apache-2.0

// The main of every test program: Catch2's, and an argument that names one seed. Plants the faults
// that the environment asks for, so that tests which are there to find them can be seen to fail.
#define CATCH_CONFIG_RUNNER
#include <cstdlib>
#include <thread>

#include "base/doorbell.h"
#include "support/seeds.h"
#include "support/virtual_system.h"
#include "transport/shm/shm.h"

#if __has_include(<catch2/catch_all.hpp>)
namespace command_line = Catch::Clara;
#else
namespace command_line = Catch::clara;
#endif

namespace {

/// Another rank comes first: in a virtual world at once, else after some time.
[[maybe_unused]] void let_others_look() noexcept {
  if (auto* system = khoro::test::VirtualSystem::of_thread(); system != nullptr)
    system->yield();
  else
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void plant_faults() {
#ifdef KHORO_TEST_SWITCHES
  // Not by the settings, which warn of unknown names once a process: tests want to see that.
  const auto number = [](const char* name) {
    const char* const value = std::getenv(name);
    return value == nullptr ? 0 : std::strtoull(value, nullptr, 10);
  };
  khoro::lose_wakeups(number("KHORO_TEST_LOSE_WAKEUP"));
  khoro::shm::publish_early(number("KHORO_TEST_PUBLISH_EARLY"), &let_others_look);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  Catch::Session session;
  const auto set = [](std::uint64_t seed) { khoro::test::only_seed = seed; };
  session.cli(session.cli() | command_line::Opt(set, "seed")["--seed"](
                                  "play this seed alone, where a test plays many"));
  if (const int wrong = session.applyCommandLine(argc, argv); wrong != 0) return wrong;
  plant_faults();
  return session.run();
}
