// SPDX-License-Identifier: Apache-2.0
// Linear: every block goes straight from the rank that has it to the one that wants it. P ranks,
// S bytes of the whole vector.
//   gather         1 round,   1/P   S bytes sent per rank, P-1 messages to the root, 1 slot
//   scatter        1 round, (P-1)/P S (the root),          P-1 messages,             1 slot
//   alltoall       1 round, (P-1)/P S,                     P-1 messages per rank,    1 slot
//   reduce         1 round,         S,                     P-1 messages to the root, 1 slot
//   reducescatter  1 round, (P-1)/P S,                     P-1 messages per rank,    1 slot
// Reductions are folded in rank order, and rounded once.
// In place alltoall lends nothing: a block that comes overwrites the one that goes the other way.

#include "algorithms/algorithm.h"
#include "algorithms/build.h"

namespace khoro {
namespace {

Lane gather_lane(Collective collective, int rank) {
  if (rank != collective.root) {
    co_yield read(input(0)) | send(collective.root);
    co_return;
  }
  co_yield read(input(0)) | write(output(rank));
  for (int distance = 1; distance < collective.ranks; ++distance) {
    const int peer = (rank + distance) % collective.ranks;
    co_yield recv(peer) | write(output(peer));
  }
}

Lane scatter_lane(Collective collective, int rank) {
  if (rank != collective.root) {
    co_yield recv(collective.root) | write(output(0));
    co_return;
  }
  for (int distance = 1; distance < collective.ranks; ++distance) {
    const int peer = (rank + distance) % collective.ranks;
    co_yield read(input(peer)) | send(peer);
  }
  co_yield read(input(rank)) | write(output(0));
}

Lane reduce_lane(Collective collective, int rank) {
  if (rank != collective.root)
    co_yield read(input(0)) | send(collective.root);
  else
    co_yield fold_in_rank_order(collective, rank, input(0)) | write(output(0));
}

Lane reducescatter_lane(Collective collective, int rank) {
  // Each begins with the rank after it, so that no rank is the first target of all.
  for (int distance = 1; distance < collective.ranks; ++distance) {
    const int peer = (rank + distance) % collective.ranks;
    co_yield read(input(peer)) | send(peer);
  }
  co_yield fold_in_rank_order(collective, rank, input(rank)) | write(output(0));
}

Lane alltoall_lane(Collective collective, int rank) {
  const int ranks = collective.ranks;
  for (int distance = 1; distance < ranks; ++distance) {
    const int peer = (rank + distance) % ranks;
    co_yield read(input(peer)) | send(peer);
  }
  co_yield read(input(rank)) | write(output(rank));
  for (int distance = 1; distance < ranks; ++distance) {
    const int peer = (rank + ranks - distance) % ranks;
    co_yield recv(peer) | write(output(peer));
  }
}

Program gather(const Collective& collective, const Topology&, const Shape&, int rank) {
  return one_lane(gather_lane, collective, rank);
}
Program scatter(const Collective& collective, const Topology&, const Shape&, int rank) {
  return one_lane(scatter_lane, collective, rank);
}
Program alltoall(const Collective& collective, const Topology&, const Shape&, int rank) {
  return one_lane(alltoall_lane, collective, rank);
}
Program reduce_to_root(const Collective& collective, const Topology&, const Shape&, int rank) {
  return one_lane(reduce_lane, collective, rank);
}
Program reducescatter(const Collective& collective, const Topology&, const Shape&, int rank) {
  return one_lane(reducescatter_lane, collective, rank);
}

Cost whole_vector(const Collective& collective, const Topology&, const Shape&) {
  return collective.ranks > 1 ? Cost{1, 1.0} : Cost{};
}
Cost one_block(const Collective& collective, const Topology&, const Shape&) {
  return collective.ranks > 1 ? Cost{1, 1.0 / collective.ranks} : Cost{};
}
Cost all_other_blocks(const Collective& collective, const Topology&, const Shape&) {
  const int peers = collective.ranks - 1;
  return {peers > 0 ? 1 : 0, static_cast<double>(peers) / collective.ranks};
}

}  // namespace

extern const Algorithm linear_gather = {
    .name = "linear",
    .collective = CollectiveKind::gather,
    .least_slots = 1,
    .rounds = "1",
    .sent = "1/P S",
    .chunks = one_chunk_per_rank,
    .program = gather,
    .cost = one_block,
};

extern const Algorithm linear_scatter = {
    .name = "linear",
    .collective = CollectiveKind::scatter,
    .least_slots = 1,
    .rounds = "1",
    .sent = "(P-1)/P S",
    .chunks = one_chunk_per_rank,
    .program = scatter,
    .cost = all_other_blocks,
};

extern const Algorithm linear_alltoall = {
    .name = "linear",
    .collective = CollectiveKind::alltoall,
    .least_slots = 1,
    .lends_in_place = false,
    .rounds = "1",
    .sent = "(P-1)/P S",
    .chunks = one_chunk_per_rank,
    .program = alltoall,
    .cost = all_other_blocks,
};

extern const Algorithm linear_reduce = {
    .name = "linear",
    .collective = CollectiveKind::reduce,
    .least_slots = 1,
    .rank_order = true,
    .rounds = "1",
    .sent = "S",
    .chunks = one_chunk,
    .program = reduce_to_root,
    .cost = whole_vector,
};

extern const Algorithm linear_reducescatter = {
    .name = "linear",
    .collective = CollectiveKind::reducescatter,
    .least_slots = 1,
    .rank_order = true,
    .rounds = "1",
    .sent = "(P-1)/P S",
    .chunks = one_chunk_per_rank,
    .program = reducescatter,
    .cost = all_other_blocks,
};

}  // namespace khoro
