// SPDX-License-Identifier: Apache-2.0
// What holds for every algorithm of the registry.
#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "support/catch.h"
#include "support/groupings.h"
#include "support/walk.h"

using namespace khoro;

namespace {

const std::vector<int> rank_counts = {1,  2,  3,  4,  5,  6,  7,  8,  9,
                                      10, 11, 12, 13, 14, 15, 16, 24, 31};

std::vector<Collective> variants(const Algorithm& algorithm, int ranks) {
  std::vector<Collective> variants;
  const Collective plain{algorithm.collective, ranks};
  for (int root = 0; root < (plain.has_root() ? ranks : 1); ++root)
    variants.push_back({algorithm.collective, ranks, root});
  if (plain.reduces()) variants.push_back({algorithm.collective, ranks, 0, true});
  return variants;
}

template <class Check>
void for_every_plan(Check check) {
  for (const Algorithm* algorithm : algorithms())
    for (int ranks : rank_counts)
      for (const test::Grouping& machines : test::groupings_for(*algorithm, ranks))
        for (const Collective& collective : variants(*algorithm, ranks)) {
          const Topology topology = Topology::machines(machines);
          const Plan plan = make_plan(*algorithm, collective, topology, Shape{});
          INFO(plan.name() << " of " << ranks << " ranks on machines " << test::text(machines)
                           << ", root " << collective.root
                           << (collective.average ? ", average" : ""));
          check(plan, test::walk(plan), algorithm->cost(collective, topology, Shape{}));
        }
}

/// The contributions in a value that a walk wrote out, sorted.
std::vector<std::string> leaves(std::string value) {
  for (char& c : value)
    if (c == '(' || c == ')' || c == '+') c = ' ';
  std::istringstream words(value);
  std::vector<std::string> found;
  for (std::string word; words >> word;)
    if (word != "/n") found.push_back(word);
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<std::string> expected_leaves(const Requirement& need, int ranks) {
  std::vector<std::string> expected;
  for (int rank = 0; rank < ranks; ++rank)
    if (need.from == Requirement::all_ranks || need.from == rank)
      expected.push_back(std::to_string(rank) + "." + std::to_string(need.chunk));
  std::sort(expected.begin(), expected.end());
  return expected;
}

int scalings(const std::string& value) {
  int count = 0;
  for (std::size_t at = value.find("/n"); at != std::string::npos; at = value.find("/n", at + 1))
    ++count;
  return count;
}

}  // namespace

TEST_CASE("every output chunk is made of what it must be, each once, scaled once", "[algorithms]") {
  for_every_plan([](const Plan& plan, const test::Walk& walk, const Cost&) {
    const Collective& collective = plan.collective;
    REQUIRE(walk.finished);
    for (int rank = 0; rank < collective.ranks; ++rank)
      for (int chunk = 0; chunk < collective.output_chunks(plan.chunks); ++chunk) {
        const std::string& value = walk.outputs[std::size_t(rank)][std::size_t(chunk)];
        const auto need = collective.requirement(rank, chunk, plan.chunks);
        if (!need) {
          REQUIRE(value.empty());
          continue;
        }
        REQUIRE(leaves(value) == expected_leaves(*need, collective.ranks));
        REQUIRE(scalings(value) == (collective.average ? 1 : 0));
        if (collective.average) REQUIRE(value.substr(value.size() - 2) == "/n");
      }
  });
}

TEST_CASE("every rank of an allreduce folds in the same order", "[algorithms]") {
  for_every_plan([](const Plan& plan, const test::Walk& walk, const Cost&) {
    if (plan.collective.kind != CollectiveKind::allreduce) return;
    for (const auto& output : walk.outputs) REQUIRE(output == walk.outputs.front());
  });
}

TEST_CASE("messages follow one another, and bytes are sent, as the formulas say", "[algorithms]") {
  for_every_plan([](const Plan& plan, const test::Walk& walk, const Cost& cost) {
    CHECK(walk.rounds == cost.rounds);
    const int most = *std::max_element(walk.sent.begin(), walk.sent.end());
    CHECK(double(most) / std::max(plan.chunks, 1) == Approx(cost.sent_per_byte));
  });
}
