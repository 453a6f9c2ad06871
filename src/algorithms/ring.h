// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "algorithms/build.h"

namespace khoro {

/// One way round a ring of all ranks, for one chunk in `ways`: way 0 goes up the ranks, way 1 down.
struct Ring {
  int ranks;
  int rank;
  int way = 0;
  int ways = 1;

  int next() const { return back(ranks - 1); }
  int prev() const { return back(1); }
  /// The chunk that starts `distance` places back along the ring; `distance` is at most `ranks`.
  int chunk(int distance) const { return back(distance) * ways + way; }

 private:
  int back(int distance) const { return (rank + (way == 0 ? ranks - distance : distance)) % ranks; }
};

// The lanes of rings; a ring says what Ring says, in whatever order of ranks.

template <class AnyRing>
Lane ring_allreduce_lane(Collective collective, AnyRing ring) {
  const int last = ring.ranks - 1;
  const int own = ring.chunk(last);
  if (ring.ranks == 1) {
    co_yield completed(read(input(own)), collective) | write(output(own));
    co_return;
  }
  co_yield read(input(ring.chunk(0))) | send(ring.next());
  for (int d = 1; d < last; ++d)
    co_yield recv(ring.prev()) | reduce(input(ring.chunk(d))) | send(ring.next());
  // The last operand completes a chunk: it is kept, and goes round once more as it is.
  co_yield completed(recv(ring.prev()) | reduce(input(own)), collective) | write(output(own)) |
      send(ring.next());
  for (int d = 0; d < last - 1; ++d)
    co_yield recv(ring.prev()) | write(output(ring.chunk(d))) | send(ring.next());
  co_yield recv(ring.prev()) | write(output(ring.chunk(last - 1)));
}

/// A block's chunk sets out from the rank after its owner and is complete when it comes to it.
template <class AnyRing>
Lane ring_reducescatter_lane(Collective collective, AnyRing ring) {
  const Span own = input(ring.chunk(0));
  if (ring.ranks == 1) {
    co_yield completed(read(own), collective) | write(output(ring.way));
    co_return;
  }
  co_yield read(input(ring.chunk(1))) | send(ring.next());
  for (int d = 2; d < ring.ranks; ++d)
    co_yield recv(ring.prev()) | reduce(input(ring.chunk(d))) | send(ring.next());
  co_yield completed(recv(ring.prev()) | reduce(own), collective) | write(output(ring.way));
}

template <class AnyRing>
Lane ring_allgather_lane(AnyRing ring) {
  Step own = read(input(ring.way)) | write(output(ring.chunk(0)));
  if (ring.ranks > 1) own.add(send(ring.next()));
  co_yield std::move(own);
  for (int d = 1; d < ring.ranks; ++d) {
    Step step = recv(ring.prev()) | write(output(ring.chunk(d)));
    if (d + 1 < ring.ranks) step.add(send(ring.next()));
    co_yield std::move(step);
  }
}

/// Of allgather and reducescatter, on however many ways.
inline Cost once_round(const Collective& collective, const Topology&, const Shape&) {
  const int hops = collective.ranks - 1;
  return {hops, static_cast<double>(hops) / collective.ranks};
}
/// Of allreduce.
inline Cost twice_round(const Collective& collective, const Topology& topology,
                        const Shape& shape) {
  const Cost once = once_round(collective, topology, shape);
  return {2 * once.rounds, 2 * once.sent_per_byte};
}

}  // namespace khoro
