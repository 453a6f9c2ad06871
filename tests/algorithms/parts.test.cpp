// SPDX-License-Identifier: Apache-2.0
#include "algorithms/parts.h"

#include <set>

#include "algorithms/groups.h"
#include "plan/text.h"
#include "support/catch.h"

using namespace khoro;

namespace {

std::string lines(Lane lane) {
  std::string text;
  while (const Step* step = lane.next()) text += print(*step, 0, {}) + "\n";
  return text;
}

const Algorithm& algorithm(CollectiveKind kind, std::string_view name) {
  return *find_algorithm(kind, name);
}

}  // namespace

TEST_CASE("a part runs an algorithm under its own ranks and chunks", "[algorithms]") {
  const Part part{algorithm(CollectiveKind::gather, "linear"),
                  {CollectiveKind::gather, 3, 1},
                  {4, 7, 2},
                  1,
                  {input(5)},
                  {scratch(0), output(3, 6), scratch(1)}};
  CHECK(lines(lane_of(part)) ==
        "read input[5] | write output[3:6]\n"
        "recv 2 | write scratch[1]\n"
        "recv 4 | write scratch[0]\n");
}

TEST_CASE("chunks that a step names together are one message", "[algorithms]") {
  const Part part{algorithm(CollectiveKind::allgather, "bruck"),
                  {CollectiveKind::allgather, 3},
                  {0, 1, 2},
                  2,
                  {output(6, 7)},
                  {output(0, 4), output(4, 6), output(6, 7)}};
  CHECK(lines(lane_of(part)) ==
        "read output[6] | send 1\n"
        "recv 0 | write output[0:4]\n"
        "read output[6] | send 0\n"
        "recv 1 | write output[4:6]\n");
}

TEST_CASE("a value of no chunks is not sent, and none is written where it was read",
          "[algorithms]") {
  const Algorithm& ring = algorithm(CollectiveKind::allgather, "ring");
  const auto lane = [&](int number) {
    return lines(lane_of({ring,
                          {CollectiveKind::allgather, 3},
                          {0, 1, 2},
                          number,
                          {number == 1 ? Span{} : scratch(number)},
                          {scratch(0), Span{}, scratch(2)}}));
  };
  CHECK(lane(0) ==
        "read scratch[0] | send 1\n"
        "recv 2 | write scratch[2] | send 1\n");
  CHECK(lane(1) ==
        "recv 0 | write scratch[0] | send 2\n"
        "recv 0 | write scratch[2]\n");
  CHECK(lane(2) ==
        "read scratch[2] | send 0\n"
        "recv 1 | write scratch[0]\n");
}

TEST_CASE("an algorithm with scratch is given a place for it", "[algorithms]") {
  Part part{algorithm(CollectiveKind::allreduce, "recursive-doubling"),
            {CollectiveKind::allreduce, 2},
            {3, 5},
            0,
            {input(1)},
            {output(1)}};
  CHECK_THROWS_AS(lines(lane_of(part)), std::out_of_range);
  part.scratch = {scratch(8), scratch(9)};
  CHECK(lines(lane_of(part)) ==
        "read input[1] | write scratch[8] | send 5\n"
        "read scratch[8] | reduce recv 5 | write output[1]\n");
}

TEST_CASE("lanes follow one another, of copies too", "[algorithms]") {
  std::vector<Lane> lanes;
  lanes.push_back(copies({{input(0), scratch(1)}, {input(1), scratch(0)}}));
  lanes.push_back(copies({}));
  lanes.push_back(copies({{scratch(0, 2), output(0, 2)}}));
  CHECK(lines(in_turn(std::move(lanes))) ==
        "read input[0] | write scratch[1]\n"
        "read input[1] | write scratch[0]\n"
        "read scratch[0:2] | write output[0:2]\n");
}

TEST_CASE("groups are in the order of their first ranks, and members in that of all",
          "[algorithms]") {
  const Groups groups(Topology::machines({4, 1, 4, 0, 1, 4}));
  REQUIRE(groups.count() == 3);
  CHECK(groups.ranks() == 6);
  CHECK(groups.members(0) == std::vector<int>{0, 2, 5});
  CHECK(groups.members(1) == std::vector<int>{1, 4});
  CHECK(groups.members(2) == std::vector<int>{3});
  CHECK(groups.most() == 3);
  CHECK(groups.least() == 1);
  CHECK(groups.seat(4).group == 1);
  CHECK(groups.seat(4).member == 1);
}

TEST_CASE("where ranks are is part of a topology's hash", "[algorithms]") {
  std::set<std::uint64_t> hashes;
  for (const std::vector<int>& machines :
       std::vector<std::vector<int>>{{0, 0, 0}, {0, 0, 1}, {0, 1, 0}, {0, 1, 1}, {0, 1, 2}})
    hashes.insert(Topology::machines(machines).hash());
  CHECK(hashes.size() == 5);
  Topology two = Topology::machines({0, 1});
  const std::uint64_t before = two.hash();
  two.sites[1].machine = 0;
  CHECK(two.hash() != before);
  CHECK(Topology::machines({0, 0, 0}) == Topology::one_machine(3));
}
