// SPDX-License-Identifier: Apache-2.0

// The main of every test program: Catch2's, and an argument that names one seed.
#define CATCH_CONFIG_RUNNER
#include "support/seeds.h"

#if __has_include(<catch2/catch_all.hpp>)
namespace command_line = Catch::Clara;
#else
namespace command_line = Catch::clara;
#endif

int main(int argc, char** argv) {
  Catch::Session session;
  const auto set = [](std::uint64_t seed) { khoro::test::only_seed = seed; };
  session.cli(session.cli() | command_line::Opt(set, "seed")["--seed"](
                                  "play this seed alone, where a test plays many"));
  const int wrong = session.applyCommandLine(argc, argv);
  return wrong != 0 ? wrong : session.run();
}
