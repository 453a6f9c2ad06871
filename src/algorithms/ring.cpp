// SPDX-License-Identifier: Apache-2.0
// Ring: every rank talks to its neighbours only. P ranks, S bytes of the whole vector.
//   allreduce      2(P-1) rounds, 2(P-1)/P S bytes sent per rank, 2 slots
//   reducescatter    P-1  rounds,  (P-1)/P S
//   allgather        P-1  rounds,  (P-1)/P S

#include "algorithms/ring.h"

namespace khoro {
namespace {

struct Ring {
  int ranks;
  int rank;
  int next() const { return (rank + 1) % ranks; }
  int prev() const { return (rank + ranks - 1) % ranks; }
  /// The chunk `distance` places back along the ring from this rank's own.
  int chunk(int distance) const { return ((rank - distance) % ranks + ranks) % ranks; }
};

Lane allreduce_lane(Collective collective, Ring ring) {
  if (ring.ranks == 1) {
    co_yield read(input(0)) | write(output(0));
    co_return;
  }
  co_yield read(input(ring.chunk(0))) | send(ring.next());
  for (int d = 1; d < ring.ranks - 1; ++d)
    co_yield recv(ring.prev()) | reduce(input(ring.chunk(d))) | send(ring.next());
  // The last operand completes a chunk: it is kept, and goes round once more as it is.
  const int own = ring.chunk(ring.ranks - 1);
  Step last = recv(ring.prev()) | reduce(input(own));
  if (collective.average) last.add(scale());
  co_yield std::move(last) | write(output(own)) | send(ring.next());
  for (int d = 0; d < ring.ranks - 2; ++d)
    co_yield recv(ring.prev()) | write(output(ring.chunk(d))) | send(ring.next());
  co_yield recv(ring.prev()) | write(output(ring.chunk(ring.ranks - 2)));
}

}  // namespace

int ring_chunks(const Collective& collective, const Shape&) { return collective.ranks; }

Program ring_allreduce(const Collective& collective, const Topology&, const Shape&, int rank) {
  Program program;
  program.lanes.push_back(allreduce_lane(collective, {collective.ranks, rank}));
  return program;
}

}  // namespace khoro
