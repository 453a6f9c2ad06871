// SPDX-License-Identifier: Apache-2.0
// Bruck: in round k each rank talks to those 2^k places away. P ranks, S bytes of the whole vector.
//   allgather   ceil(log2 P) rounds, (P-1)/P S bytes sent per rank, 1 slot
//   alltoall    ceil(log2 P) rounds, m/P S with m the bits that are set in 1..P-1 together, about
//               P/2 log2 P,                                         1 slot
// Allgather: a rank has its own block and the 2^k - 1 after it, and gets as many again, or the
// rest, where they stay; what goes round the end of the output is two messages. Alltoall: the block
// for the rank d places on travels there in jumps of the powers of two that d is made of; all
// blocks of a jump go in one message. Few messages for more bytes: it is for small blocks and many
// ranks.

#include <algorithm>
#include <utility>
#include <vector>

#include "algorithms/algorithm.h"
#include "algorithms/around.h"
#include "algorithms/build.h"

namespace khoro {
namespace {

Lane allgather_lane(int ranks, int rank) {
  Step own = read(input(0)) | write(output(rank));
  if (ranks > 1) own.add(send((rank + ranks - 1) % ranks));
  co_yield std::move(own);
  for (int have = 1; have < ranks; have *= 2) {
    const int count = given_to_double(have, ranks);
    const int before = (rank + ranks - have) % ranks;
    const int after = (rank + have) % ranks;
    if (have > 1)
      for (const Span& blocks : around(rank, count, ranks)) co_yield read(blocks) | send(before);
    for (const Span& blocks : around(after, count, ranks)) co_yield recv(after) | write(blocks);
  }
}

/// How many of the distances 1..ranks-1 have the bit.
int count_with(int bit, int ranks) {
  int count = 0;
  for (int distance = bit; distance < ranks; ++distance)
    if (distance & bit) ++count;
  return count;
}

/// Blocks are known by the distance that they have to travel. The first chunks of scratch are where
/// a message is put together; each that comes has chunks of its own, where its blocks stay until
/// they travel on.
Lane alltoall_lane(Collective collective, int rank) {
  const int ranks = collective.ranks;
  std::vector<Span> place;
  for (int distance = 0; distance < ranks; ++distance)
    place.push_back(input((rank + distance) % ranks));

  int came = count_with(1, ranks);  // chunks of scratch that are taken
  for (int bit = 1; bit < ranks; bit <<= 1) {
    const int first = came;
    int packed = 0;
    for (int distance = bit; distance < ranks; ++distance) {
      if ((distance & bit) == 0) continue;
      co_yield read(place[static_cast<std::size_t>(distance)]) | write(scratch(packed++));
      place[static_cast<std::size_t>(distance)] = scratch(came++);
    }
    co_yield read(scratch(0, packed)) | send((rank + bit) % ranks);
    co_yield recv((rank + ranks - bit) % ranks) | write(scratch(first, came));
  }
  for (int distance = 0; distance < ranks; ++distance)
    co_yield read(place[static_cast<std::size_t>(distance)]) |
        write(output((rank + ranks - distance) % ranks));
}

Program allgather(const Collective& collective, const Topology&, const Shape&, int rank) {
  return one_lane(allgather_lane, collective.ranks, rank);
}
Program alltoall(const Collective& collective, const Topology&, const Shape&, int rank) {
  return one_lane(alltoall_lane, collective, rank);
}

Cost allgather_cost(const Collective& collective, const Topology&, const Shape&) {
  return {ceil_log2(collective.ranks), (collective.ranks - 1.0) / collective.ranks};
}
Cost alltoall_cost(const Collective& collective, const Topology&, const Shape&) {
  int sent = 0;
  for (int bit = 1; bit < collective.ranks; bit <<= 1) sent += count_with(bit, collective.ranks);
  return {ceil_log2(collective.ranks), static_cast<double>(sent) / collective.ranks};
}

/// Nothing that rank 0 gives goes round the end.
int widest_of_allgather(const Collective& collective, const Topology&, const Shape&) {
  return most_given(collective.ranks);
}
/// No bit is in more of the distances than the lowest.
int widest_of_alltoall(const Collective& collective, const Topology&, const Shape&) {
  return std::max(count_with(1, collective.ranks), 1);
}

}  // namespace

extern const Algorithm bruck_allgather = {
    .name = "bruck",
    .collective = CollectiveKind::allgather,
    .least_slots = 1,
    .rounds = "ceil(log2 P)",
    .sent = "(P-1)/P S",
    .chunks = one_chunk_per_rank,
    .program = allgather,
    .cost = allgather_cost,
    .widest = widest_of_allgather,
};

extern const Algorithm bruck_alltoall = {
    .name = "bruck",
    .collective = CollectiveKind::alltoall,
    .least_slots = 1,
    .equal_blocks = true,
    .rounds = "ceil(log2 P)",
    .sent = "m/P S, m the bits set in 1..P-1",
    .chunks = one_chunk_per_rank,
    .program = alltoall,
    .cost = alltoall_cost,
    .widest = widest_of_alltoall,
};

}  // namespace khoro
