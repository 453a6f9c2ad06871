// SPDX-License-Identifier: Apache-2.0
#include "plan/image.h"

#include <set>

#include "support/catch.h"

using namespace khoro;

namespace {

Lane up() {
  co_yield recv(1) | reduce(input(0)) | write(scratch(2)) | send(3) | signal(0);
  co_yield read(input(1)) | send(3);
}
Lane down(int last_peer) {
  co_yield await(0) | read(scratch(2)) | send(1);
  co_yield recv(last_peer, 0) | write(output(0));
}

Plan two_lanes(int tokens_at_start = 0, int last_peer = 3) {
  Plan plan;
  plan.collective = {CollectiveKind::allreduce, 4};
  plan.chunks = 2;
  plan.program = [=](int) {
    Program program;
    program.tokens = {{"ready", tokens_at_start}};
    program.lanes.push_back(up());
    program.lanes.push_back(down(last_peer));
    return program;
  };
  return plan;
}

}  // namespace

TEST_CASE("an image holds the stages of all lanes, channels resolved, each port once", "[plan]") {
  const Image image = flatten(two_lanes(), 0);
  REQUIRE(image.lanes.size() == 2);
  CHECK(image.lanes[0].first == 0);
  CHECK(image.lanes[0].last == 7);
  CHECK(image.lanes[1].first == 7);
  CHECK(image.lanes[1].last == 12);
  CHECK(image.stages.size() == 12);
  CHECK(image.chunks == 2);
  CHECK(image.scratch_chunks == 3);
  CHECK(image.token_counts == std::vector<int>{0});
  CHECK(image.ports == std::vector<Port>{{1, 0, false}, {3, 0, true}, {1, 1, true}, {3, 0, false}});
  for (std::size_t i = 0; i < image.stages.size(); ++i) {
    const Stage& stage = image.stages[i];
    if (!stage.has_channel()) continue;
    const Port& port = image.ports[image.port_of_stage[i]];
    CHECK(port.peer == stage.peer());
    CHECK(port.index == stage.index);
    CHECK(port.sends == (stage.verb == Verb::send));
  }
}

TEST_CASE("the last stage of each step is marked, and no other", "[plan]") {
  const Image image = flatten(two_lanes(), 0);
  std::set<std::size_t> ends;
  for (std::size_t i = 0; i < image.stages.size(); ++i)
    if (image.stages[i].flags & Stage::ends) ends.insert(i);
  CHECK(ends == std::set<std::size_t>{4, 6, 9, 11});
}

TEST_CASE("the program hash tells programs apart by any stage and any token", "[plan]") {
  const std::uint64_t hash = flatten(two_lanes(), 0).hash;
  CHECK(flatten(two_lanes(), 0).hash == hash);
  CHECK(flatten(two_lanes(1), 0).hash != hash);
  CHECK(flatten(two_lanes(0, 2), 0).hash != hash);
}
