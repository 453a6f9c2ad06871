// SPDX-License-Identifier: Apache-2.0
#include "plan/collective.h"

#include <set>

#include "support/catch.h"

using namespace khoro;

TEST_CASE("each collective asks for the chunks that its definition names", "[plan]") {
  const int chunks = 6;
  const Requirement all_of_4{Requirement::all_ranks, 4};

  const Collective allreduce{CollectiveKind::allreduce, 3};
  CHECK(allreduce.input_chunks(chunks) == 6);
  CHECK(allreduce.output_chunks(chunks) == 6);
  CHECK(allreduce.requirement(1, 4, chunks) == all_of_4);

  const Collective broadcast{CollectiveKind::broadcast, 3, 2};
  CHECK(broadcast.output_chunks(chunks) == 6);
  CHECK(broadcast.requirement(0, 4, chunks) == Requirement{2, 4});

  const Collective allgather{CollectiveKind::allgather, 3};
  CHECK(allgather.input_chunks(chunks) == 2);
  CHECK(allgather.output_chunks(chunks) == 6);
  CHECK(allgather.requirement(0, 5, chunks) == Requirement{2, 1});

  const Collective reducescatter{CollectiveKind::reducescatter, 3};
  CHECK(reducescatter.input_chunks(chunks) == 6);
  CHECK(reducescatter.output_chunks(chunks) == 2);
  CHECK(reducescatter.requirement(2, 0, chunks) == all_of_4);

  const Collective reduce{CollectiveKind::reduce, 3, 1};
  CHECK(reduce.input_chunks(chunks) == 6);
  CHECK(reduce.output_chunks(chunks) == 6);
  CHECK(reduce.requirement(1, 4, chunks) == all_of_4);
  CHECK_FALSE(reduce.requirement(0, 4, chunks).has_value());

  const Collective gather{CollectiveKind::gather, 3, 1};
  CHECK(gather.input_chunks(chunks) == 2);
  CHECK(gather.output_chunks(chunks) == 6);
  CHECK(gather.requirement(1, 5, chunks) == Requirement{2, 1});
  CHECK_FALSE(gather.requirement(2, 5, chunks).has_value());

  const Collective scatter{CollectiveKind::scatter, 3, 1};
  CHECK(scatter.input_chunks(chunks) == 6);
  CHECK(scatter.output_chunks(chunks) == 2);
  CHECK(scatter.requirement(2, 1, chunks) == Requirement{1, 5});
  CHECK(scatter.has_input(1));
  CHECK_FALSE(scatter.has_input(2));

  const Collective alltoall{CollectiveKind::alltoall, 3};
  CHECK(alltoall.input_chunks(chunks) == 6);
  CHECK(alltoall.output_chunks(chunks) == 6);
  CHECK(alltoall.requirement(1, 4, chunks) == Requirement{2, 2});

  const Collective barrier{CollectiveKind::barrier, 3};
  CHECK(barrier.input_chunks(chunks) == 0);
  CHECK(barrier.output_chunks(chunks) == 0);
  CHECK_FALSE(barrier.requirement(0, 0, 0).has_value());
}

TEST_CASE("a call in place lays an output chunk over the input chunk of the same data", "[plan]") {
  const int chunks = 6;
  for (CollectiveKind kind :
       {CollectiveKind::allreduce, CollectiveKind::broadcast, CollectiveKind::allgather,
        CollectiveKind::reducescatter, CollectiveKind::reduce, CollectiveKind::gather,
        CollectiveKind::scatter}) {
    const Collective collective{kind, 3, 1};
    for (int rank = 0; rank < 3; ++rank)
      for (int chunk = 0; chunk < collective.output_chunks(chunks); ++chunk) {
        INFO(name(kind) << " rank " << rank << " chunk " << chunk);
        const auto input = collective.in_place_input(rank, chunk, chunks);
        const auto need = collective.requirement(rank, chunk, chunks);
        const bool both = collective.has_input(rank) && collective.has_output(rank);
        const bool own = need && (need->from == rank || need->from == Requirement::all_ranks);
        CHECK(input.has_value() == (both && own));
        if (input) CHECK(*input == need->chunk);
      }
  }
}

TEST_CASE("an alltoall in place lays the block that comes over the one that goes", "[plan]") {
  const Collective alltoall{CollectiveKind::alltoall, 3};
  for (int chunk = 0; chunk < 6; ++chunk) CHECK(alltoall.in_place_input(1, chunk, 6) == chunk);
}

TEST_CASE("a collective's name leads back to it, and no other name does", "[plan]") {
  for (CollectiveKind kind :
       {CollectiveKind::allreduce, CollectiveKind::broadcast, CollectiveKind::allgather,
        CollectiveKind::reducescatter, CollectiveKind::barrier, CollectiveKind::reduce,
        CollectiveKind::gather, CollectiveKind::scatter, CollectiveKind::alltoall})
    CHECK(collective_named(name(kind)) == kind);
  CHECK_FALSE(collective_named("").has_value());
  CHECK_FALSE(collective_named("allreduc").has_value());
}

TEST_CASE("collectives that ask for different things have different hashes", "[plan]") {
  std::set<std::uint64_t> hashes;
  int number = 0;
  for (int ranks : {1, 2, 3})
    for (bool average : {false, true})
      for (CollectiveKind kind : {CollectiveKind::allreduce, CollectiveKind::reducescatter}) {
        hashes.insert(Collective{kind, ranks, 0, average}.hash());
        ++number;
      }
  for (bool unequal : {false, true})
    for (bool rank_order : {false, true})
      for (bool premul : {false, true}) {
        hashes.insert(
            Collective{CollectiveKind::reduce, 4, 0, false, unequal, rank_order, premul}.hash());
        ++number;
      }
  for (int root : {0, 1, 2}) {
    hashes.insert(Collective{CollectiveKind::broadcast, 3, root}.hash());
    ++number;
  }
  CHECK(hashes.size() == std::size_t(number));
  // What does not matter does not count.
  CHECK(Collective{CollectiveKind::allreduce, 3, 1}.hash() ==
        Collective{CollectiveKind::allreduce, 3, 2}.hash());
}
