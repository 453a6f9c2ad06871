// SPDX-License-Identifier: Apache-2.0
// quote: begin
// Star: the root sends the whole vector to every other rank. P ranks, S bytes.
//   broadcast   1 round, (P-1) S bytes sent by the root, 1 slot

#include "algorithms/algorithm.h"
#include "algorithms/build.h"

namespace khoro {
namespace {

/// A coroutine that yields the steps of one rank, in their order.
Lane lane(Collective collective, int rank) {
  if (rank != collective.root) {
    co_yield recv(collective.root) | write(output(0));
    co_return;
  }
  Step step = read(input(0)) | write(output(0));
  for (int peer = 0; peer < collective.ranks; ++peer)
    if (peer != rank) step.add(send(peer));
  co_yield std::move(step);
}

Program program(const Collective& collective, const Topology&, const Shape&, int rank) {
  return one_lane(lane, collective, rank);
}

Cost cost(const Collective& collective, const Topology&, const Shape&) {
  return {collective.ranks > 1 ? 1 : 0, collective.ranks - 1.0};
}

}  // namespace

extern const Algorithm star_broadcast = {
    .name = "star",
    .collective = CollectiveKind::broadcast,
    .least_slots = 1,
    .rounds = "1",
    .sent = "(P-1) S",
    .chunks = one_chunk,
    .program = program,
    .cost = cost,
};

}  // namespace khoro
// quote: end
