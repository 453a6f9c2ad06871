// SPDX-License-Identifier: Apache-2.0
// Calls on virtual GPUs of which any block and any stream is delayed at any step, as a seed says:
// whatever the schedule, calls end and have the bits of those on hosts.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "support/catch.h"
#include "support/play_cases.h"
#include "support/scoped_environment.h"
#include "support/seeds.h"

using namespace khoro;
using namespace khoro::test;

namespace {

/// Calls on one communicator, whose ranks are threads.
struct Schedule {
  int gpus = 1;         // ranks beyond take them in turn
  std::string machine;  // empty: all GPUs reach each other
  std::string settings;
  std::vector<Case> cases;
  Playing playing = Playing::alone;
};

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(mix(seed)) {}

  std::size_t below(std::size_t end) { return static_cast<std::size_t>(random_() % end); }
  bool one_in(std::size_t many) { return below(many) == 0; }
  template <class List>
  auto of(const List& list) {
    return std::begin(list)[static_cast<std::ptrdiff_t>(below(std::size(list)))];
  }

 private:
  std::mt19937_64 random_;
};

Case drawn_case(Draw& draw) {
  Case what;
  do {
    what.dtype = draw.of(dtypes()).dtype;
    what.reduction = draw.of(reductions()).reduction;
  } while (!applies(what.reduction, what.dtype));
  what.ranks = 2 + static_cast<int>(draw.below(7));
  what.root = static_cast<int>(draw.below(static_cast<std::size_t>(what.ranks)));
  if (!draw.one_in(8)) what.kind = draw.of(kinds_that_move_data());
  what.in_place = what.kind && draw.one_in(2);
  if (what.kind) what.forced = draw.of(ways_of(*what.kind));
  what.exact = what.forced == nullptr && draw.one_in(4);
  return what;
}

Schedule drawn(std::uint64_t seed) {
  Draw draw(seed);
  Schedule schedule;
  const Case like = drawn_case(draw);
  for (int i = 0; i < 3; ++i) {
    Case what = like;
    // Few and many, and what takes several messages of 4 KiB.
    what.count = draw.below(std::size_t{1} << (1 + draw.below(11)));
    what.alignment = draw.of(alignments);
    what.way = static_cast<Way>(draw.below(std::size(way_names)));
    what.seed = seed;
    schedule.cases.push_back(what);
  }
  // Of any collectives, as the library chooses.
  if (draw.one_in(4)) schedule.playing = Playing::together;
  for (Case& what : schedule.cases) {
    if (schedule.playing == Playing::alone) break;
    what.forced = nullptr;
    if (draw.one_in(8)) continue;
    what.kind = draw.of(kinds_that_move_data());
    what.in_place = draw.one_in(2);
  }
  schedule.gpus = like.ranks;
  if (draw.one_in(2)) schedule.gpus = 1 + static_cast<int>(draw.below(std::size_t(like.ranks)));
  schedule.settings = "KHORO_MEMORY=virtual;KHORO_FLAGGED_BYTES=";
  schedule.settings += draw.of(std::initializer_list<const char*>{"0", "64", "4096", "16384"});
  schedule.settings += ";KHORO_GPU_STRANDS=" + std::to_string(1 + draw.below(4));
  schedule.settings += ";KHORO_SLOTS=" + std::to_string(2 + draw.below(7));
  // Messages lie in slots, or in buffers of callers; in memory of GPUs, of the host, or in either.
  schedule.settings += ";KHORO_DIRECT_BYTES=";
  schedule.settings += draw.of(std::initializer_list<const char*>{"0", "1", "1", "700"});
  if (draw.one_in(3))
    schedule.settings += ";KHORO_PEER_ACCESS=off";
  else if (draw.one_in(2))
    schedule.machine = KHORO_GOLDEN_FOLDER "/topologies/synth-hybrid-cube-mesh-8xv100.xml";
  return schedule;
}

}  // namespace

TEST_CASE("seeded delays of blocks and streams change no bit of a call on GPUs", "[gpu]") {
  for_each_seed(40, [](std::uint64_t seed) {
    const Schedule schedule = drawn(seed);
    const ScopedEnvironment delays("KHORO_TEST_VIRTUAL_SEED", std::to_string(seed + 1));
    const ScopedEnvironment gpus("KHORO_VIRTUAL_GPUS", std::to_string(schedule.gpus));
    std::optional<ScopedEnvironment> machine;
    if (!schedule.machine.empty()) machine.emplace("KHORO_TOPO_FILE", schedule.machine);
    INFO(schedule.gpus << " GPUs" << (machine ? " of a cube mesh" : "") << ", "
                       << schedule.settings);
    play_cases(Living::threads, schedule.cases, schedule.settings, schedule.playing);
  });
}
