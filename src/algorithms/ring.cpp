// SPDX-License-Identifier: Apache-2.0
// Ring: every rank talks to its neighbours only. P ranks, S bytes of the whole vector.
//   allreduce      2(P-1) rounds, 2(P-1)/P S bytes sent per rank, 2 slots
//   reducescatter    P-1  rounds,  (P-1)/P S,                     2 slots
//   allgather        P-1  rounds,  (P-1)/P S,                     2 slots
// With one slot every rank would wait for the next to free the slot that it fills itself.

#include "algorithms/algorithm.h"
#include "algorithms/build.h"

namespace khoro {
namespace {

struct Ring {
  int ranks;
  int rank;
  int next() const { return (rank + 1) % ranks; }
  int prev() const { return (rank + ranks - 1) % ranks; }
  /// The chunk that starts `distance` places back along the ring; `distance` is at most `ranks`.
  int chunk(int distance) const { return (rank + ranks - distance) % ranks; }
};

Lane allreduce_lane(Collective collective, Ring ring) {
  if (ring.ranks == 1) {
    co_yield completed(read(input(0)), collective) | write(output(0));
    co_return;
  }
  co_yield read(input(ring.chunk(0))) | send(ring.next());
  for (int d = 1; d < ring.ranks - 1; ++d)
    co_yield recv(ring.prev()) | reduce(input(ring.chunk(d))) | send(ring.next());
  // The last operand completes a chunk: it is kept, and goes round once more as it is.
  const int own = ring.chunk(ring.ranks - 1);
  co_yield completed(recv(ring.prev()) | reduce(input(own)), collective) | write(output(own)) |
      send(ring.next());
  for (int d = 0; d < ring.ranks - 2; ++d)
    co_yield recv(ring.prev()) | write(output(ring.chunk(d))) | send(ring.next());
  co_yield recv(ring.prev()) | write(output(ring.chunk(ring.ranks - 2)));
}

/// Chunk c sets out from rank c+1 and is complete when it comes to rank c.
Lane reducescatter_lane(Collective collective, Ring ring) {
  if (ring.ranks == 1) {
    co_yield completed(read(input(0)), collective) | write(output(0));
    co_return;
  }
  co_yield read(input(ring.chunk(1))) | send(ring.next());
  for (int d = 2; d < ring.ranks; ++d)
    co_yield recv(ring.prev()) | reduce(input(ring.chunk(d))) | send(ring.next());
  co_yield completed(recv(ring.prev()) | reduce(input(ring.rank)), collective) | write(output(0));
}

Lane allgather_lane(Ring ring) {
  if (ring.ranks == 1) {
    co_yield read(input(0)) | write(output(0));
    co_return;
  }
  co_yield read(input(0)) | write(output(ring.rank)) | send(ring.next());
  for (int d = 1; d < ring.ranks - 1; ++d)
    co_yield recv(ring.prev()) | write(output(ring.chunk(d))) | send(ring.next());
  co_yield recv(ring.prev()) | write(output(ring.chunk(ring.ranks - 1)));
}

int one_chunk_per_rank(const Collective& collective, const Shape&) { return collective.ranks; }

Program allreduce(const Collective& collective, const Topology&, const Shape&, int rank) {
  return one_lane(allreduce_lane, collective, Ring{collective.ranks, rank});
}
Program reducescatter(const Collective& collective, const Topology&, const Shape&, int rank) {
  return one_lane(reducescatter_lane, collective, Ring{collective.ranks, rank});
}
Program allgather(const Collective& collective, const Topology&, const Shape&, int rank) {
  return one_lane(allgather_lane, Ring{collective.ranks, rank});
}

Cost once_round(const Collective& collective, const Shape&) {
  const int hops = collective.ranks - 1;
  return {hops, static_cast<double>(hops) / collective.ranks};
}
Cost twice_round(const Collective& collective, const Shape& shape) {
  const Cost once = once_round(collective, shape);
  return {2 * once.rounds, 2 * once.sent_per_byte};
}

}  // namespace

extern const Algorithm ring_allreduce = {
    .name = "ring",
    .collective = CollectiveKind::allreduce,
    .least_slots = 2,
    .rounds = "2(P-1)",
    .sent = "2(P-1)/P S",
    .chunks = one_chunk_per_rank,
    .program = allreduce,
    .cost = twice_round,
};

extern const Algorithm ring_reducescatter = {
    .name = "ring",
    .collective = CollectiveKind::reducescatter,
    .least_slots = 2,
    .rounds = "P-1",
    .sent = "(P-1)/P S",
    .chunks = one_chunk_per_rank,
    .program = reducescatter,
    .cost = once_round,
};

extern const Algorithm ring_allgather = {
    .name = "ring",
    .collective = CollectiveKind::allgather,
    .least_slots = 2,
    .rounds = "P-1",
    .sent = "(P-1)/P S",
    .chunks = one_chunk_per_rank,
    .program = allgather,
    .cost = once_round,
};

}  // namespace khoro
