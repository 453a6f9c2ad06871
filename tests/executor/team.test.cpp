// SPDX-License-Identifier: Apache-2.0
#include "executor/thread_team.h"

#include <thread>

#include "executor/host_engine.h"
#include "executor/interpreter.h"
#include "support/catch.h"
#include "support/memory_job.h"

using namespace khoro;
using test::JobBuffers;
using test::JobCall;
using test::MemoryEnds;
using test::MemoryNetwork;

namespace {

constexpr unsigned members = 3;

/// One rank with one lane, as an engine and a lane state that a team serves.
struct Seat {
  Seat(const Plan& plan, int rank, MemoryNetwork& network)
      : ends(network, rank),
        image(flatten(plan, rank)),
        engine(image, plan.collective, ends, {}),
        operands(16),
        sources(16),
        sinks(16) {
    lane.first = lane.stage = image.lanes.at(0).first;
    lane.last = image.lanes.at(0).last;
    lane.operands = operands.data();
    lane.sources = sources.data();
    lane.sinks = sinks.data();
  }
  MemoryEnds ends;
  Image image;
  HostEngine engine;
  LaneState lane;
  std::vector<Operand> operands;
  std::vector<Source> sources;
  std::vector<Sink> sinks;
};

/// Every rank in turn, each by the same team, until all are done.
bool serve(std::vector<std::unique_ptr<Seat>>& seats) {
  std::barrier<> meeting(members);
  std::vector<Progress> verdicts(members, Progress::moved);
  const auto work = [&](unsigned member) {
    const ThreadTeam team(meeting, member, members);
    for (std::size_t done = 0, turn = 0; done < seats.size(); ++turn) {
      Seat& seat = *seats[turn % seats.size()];
      const Progress progress = advance(seat.engine, team, seat.lane);
      verdicts[member] = progress;
      if (progress == Progress::failed || turn > 100'000) return;
      done = progress == Progress::done ? done + 1 : 0;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned member = 0; member < members; ++member) threads.emplace_back(work, member);
  for (std::thread& thread : threads) thread.join();
  for (Progress verdict : verdicts)
    if (verdict != Progress::done) return false;
  return true;
}

}  // namespace

TEST_CASE("a team of threads moves a lane's data as one thread does", "[executor]") {
  for (const char* name : {"one-shot", "two-shot", "ring"})
    for (bool average : {false, true}) {
      const Plan plan = test::plan_of(*find_algorithm(CollectiveKind::allreduce, name), 4, average);
      for (std::size_t count : {1, 1000, 50'000}) {
        MemoryNetwork network({2, 65'536, false});
        JobCall call{Dtype::bf16, average ? Reduction::avg : Reduction::sum, count, false, 3, 5};
        std::vector<std::unique_ptr<Seat>> seats;
        std::vector<JobBuffers> buffers;
        std::vector<std::vector<std::byte>> inputs;
        std::mt19937_64 random(call.seed);
        for (int rank = 0; rank < 4; ++rank) {
          JobBuffers& own = buffers.emplace_back(plan.collective, rank, call);
          test::fill_elements(own.input(), count, call.dtype, random);
          inputs.emplace_back(own.input(), own.input() + own.input_bytes());
          own.remember();
          seats.push_back(std::make_unique<Seat>(plan, rank, network));
          seats.back()->engine.start(
              {{own.input(), own.output()}, count, call.dtype, call.reduction, 1});
        }
        INFO(text(plan, call));
        REQUIRE(serve(seats));
        const test::Arithmetic arithmetic{call.dtype, call.reduction};
        const Grid grid = test::grid_of(plan, arithmetic, count, 65'536);
        test::Oracle oracle(plan, arithmetic, grid, inputs);
        for (int rank = 0; rank < 4; ++rank) {
          JobBuffers& own = buffers[static_cast<std::size_t>(rank)];
          REQUIRE(oracle.matches(rank, own.output()));
          REQUIRE(own.rest_intact());
        }
      }
    }
}
