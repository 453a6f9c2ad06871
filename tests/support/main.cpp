// SPDX-License-Identifier: Apache-2.0

// The main of every test program: Catch2's, and arguments that name seeds.
#define CATCH_CONFIG_RUNNER
#include "support/seeds.h"

#if __has_include(<catch2/catch_all.hpp>)
namespace command_line = Catch::Clara;
#else
namespace command_line = Catch::clara;
#endif

int main(int argc, char** argv) {
  Catch::Session session;
  const auto play_from = [](std::uint64_t seed) { khoro::test::first_seed = seed; };
  const auto play_many = [](std::uint64_t count) { khoro::test::seed_count = count; };
  session.cli(session.cli() |
              command_line::Opt(play_from,
                                "seed")["--seed"]("play this seed alone, where a test plays many") |
              command_line::Opt(
                  play_many, "count")["--seeds"]("play so many seeds, from that one on or from 0"));
  const int wrong = session.applyCommandLine(argc, argv);
  return wrong != 0 ? wrong : session.run();
}
