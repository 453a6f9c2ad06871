// SPDX-License-Identifier: Apache-2.0
// Seconds that proofs take on one core: `verify_speed [RANKS] [SLOTS]`. The ring is the largest of
// the plans that grow with the square of the ranks; the law proves every algorithm at 1..64 ranks.

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>

#include "algorithms/algorithm.h"
#include "plan/verify.h"

using namespace khoro;

namespace {

double seconds(const auto& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void time_ring(int ranks, int slots) {
  const Collective collective{CollectiveKind::allreduce, ranks};
  const Plan plan = make_plan(*find_algorithm(CollectiveKind::allreduce, "ring"), collective,
                              Topology::one_machine(ranks), Shape{});
  Verdict verdict;
  const double time = seconds([&] { verdict = verify(plan, {.slots = slots}); });
  fmt::print("{} ranks {} slots {}: {}, {} steps, {:.3f} s\n", plan.name(), ranks, slots,
             verdict.proved() ? "proved" : verdict.found->diagnostic.message, verdict.steps, time);
}

}  // namespace

int main(int count, char** words) {
  const int ranks = count > 1 ? std::atoi(words[1]) : 1024;
  const int slots = count > 2 ? std::atoi(words[2]) : 2;
  time_ring(ranks, slots);
}
