// SPDX-License-Identifier: Apache-2.0
#include "planner/rule.h"

#include <algorithm>

#include "support/catch.h"

using namespace khoro;

namespace {

Choice chosen(CollectiveKind kind, int ranks, std::size_t bytes, int slots = Shape{}.slots) {
  return choose({kind, ranks}, bytes, Topology::one_machine(ranks), slots);
}

}  // namespace

TEST_CASE("the default rule finds an algorithm of the collective for any call", "[planner]") {
  for (CollectiveKind kind :
       {CollectiveKind::allreduce, CollectiveKind::broadcast, CollectiveKind::allgather,
        CollectiveKind::reducescatter, CollectiveKind::barrier, CollectiveKind::reduce,
        CollectiveKind::gather, CollectiveKind::scatter, CollectiveKind::alltoall})
    for (int ranks : {1, 2, 8, 9, 64, 65536})
      for (std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{4096},
                                std::size_t{4097}, std::size_t{1} << 22, ~std::size_t{0}}) {
        INFO(name(kind) << ", " << ranks << " ranks, " << bytes << " bytes");
        const Choice choice = chosen(kind, ranks, bytes);
        REQUIRE(choice.algorithm != nullptr);
        CHECK(choice.algorithm->collective == kind);
        CHECK(choice.algorithm->least_slots <= choice.shape.slots);
        CHECK_FALSE(choice.why.empty());
      }
}

TEST_CASE("with few slots an algorithm is chosen that needs no more, where there is one",
          "[planner]") {
  for (int ranks : {1, 2, 8, 9, 64})
    for (std::size_t bytes : {std::size_t{1}, std::size_t{1} << 16, std::size_t{1} << 30})
      for (CollectiveKind kind :
           {CollectiveKind::allreduce, CollectiveKind::broadcast, CollectiveKind::allgather,
            CollectiveKind::reducescatter, CollectiveKind::barrier, CollectiveKind::reduce,
            CollectiveKind::gather, CollectiveKind::scatter, CollectiveKind::alltoall}) {
        INFO(name(kind) << ", " << ranks << " ranks, " << bytes << " bytes");
        const bool only_rings =
            kind == CollectiveKind::allgather || kind == CollectiveKind::reducescatter;
        const Choice choice = chosen(kind, ranks, bytes, 1);
        REQUIRE(choice.algorithm != nullptr);
        CHECK(choice.shape.slots == 1);
        CHECK(runs_with(*choice.algorithm, ranks, 1) == (ranks == 1 || !only_rings));
      }
  CHECK(chosen(CollectiveKind::allreduce, 8, 1 << 20, 1).algorithm->name == "double-tree");
  CHECK(chosen(CollectiveKind::allreduce, 8, 1 << 20, 2).algorithm->name == "two-shot");
}

TEST_CASE("every line of the default rule names an algorithm and decides some call", "[planner]") {
  for (const RuleRow& row : default_rule()) {
    INFO(name(row.collective) << " " << row.algorithm);
    REQUIRE(find_algorithm(row.collective, row.algorithm) != nullptr);
    Collective collective{row.collective, std::min(row.most_ranks, 1000)};
    collective.rank_order = row.rank_order;
    const Choice choice =
        choose(collective, row.most_bytes, Topology::one_machine(collective.ranks), Shape{}.slots,
               row.over_sockets ? Medium::sockets : Medium::memory);
    CHECK(choice.why == row.why);
    CHECK(choice.algorithm->name == row.algorithm);
  }
}

TEST_CASE("an allreduce is one-shot when small, a ring when large, a tree among many",
          "[planner]") {
  const auto name = [](int ranks, std::size_t bytes) {
    return chosen(CollectiveKind::allreduce, ranks, bytes).algorithm->name;
  };
  CHECK(name(1, 1 << 30) == "one-shot");
  CHECK(name(8, 4096) == "one-shot");
  CHECK(name(8, 4097) == "two-shot");
  CHECK(name(8, (4 << 20) + 1) == "ring");
  CHECK(name(9, 8) == "double-tree");
  CHECK(name(64, 1 << 20) == "ring");
}

TEST_CASE("over sockets fewer rounds are worth more bytes", "[planner]") {
  const auto name = [](Medium medium, int ranks, std::size_t bytes) {
    const Collective collective{CollectiveKind::allreduce, ranks};
    return choose(collective, bytes, Topology::one_machine(ranks), Shape{}.slots, medium)
        .algorithm->name;
  };
  for (const Medium medium : {Medium::memory, Medium::sockets}) {
    CHECK(name(medium, 8, 4096) == "one-shot");
    CHECK(name(medium, 8, 16'385) == "two-shot");
    CHECK(name(medium, 9, 8'192) == "double-tree");
  }
  CHECK(name(Medium::sockets, 2, 65'536) == "one-shot");
  CHECK(name(Medium::sockets, 8, 16'384) == "one-shot");
  CHECK(name(Medium::memory, 8, 16'384) == "two-shot");
}

TEST_CASE("who asks for a fold in rank order gets an algorithm that does it", "[planner]") {
  for (CollectiveKind kind :
       {CollectiveKind::allreduce, CollectiveKind::reducescatter, CollectiveKind::reduce})
    for (int ranks : {1, 2, 8, 9, 64, 4096})
      for (bool unequal : {false, true})
        for (int slots : {1, 2, 8})
          for (std::size_t bytes : {std::size_t{0}, std::size_t{4096}, std::size_t{1} << 40}) {
            const Collective collective{kind, ranks, 0, false, unequal, true};
            INFO(name(kind) << ", " << ranks << " ranks, " << bytes << " bytes, " << slots
                            << " slots");
            const Choice choice = choose(collective, bytes, Topology::one_machine(ranks), slots);
            CHECK(choice.algorithm->rank_order);
            CHECK(can_do(*choice.algorithm, collective));
            CHECK(runs_with(*choice.algorithm, ranks, slots));
          }
}
