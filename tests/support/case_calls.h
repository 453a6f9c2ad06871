// SPDX-License-Identifier: Apache-2.0
// Cases as calls of the C face.
#pragma once

#include <khoro/khoro.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <vector>

#include "support/case.h"
#include "support/case_reduction.h"

namespace khoro::test {

/// What one rank calls with.
struct Part {
  int rank = 0;
  const void* in = nullptr;
  void* out = nullptr;
  khoroComm_t comm = nullptr;
  khoroStream_t stream = nullptr;
};

inline khoroResult_t first_failure(std::initializer_list<khoroResult_t> results) {
  for (khoroResult_t result : results)
    if (result != khoroSuccess) return result;
  return khoroSuccess;
}

inline int right_of(const Case& what, int rank) { return (rank + 1) % what.ranks; }
inline int left_of(const Case& what, int rank) { return (rank + what.ranks - 1) % what.ranks; }

inline khoroResult_t send_around(const Case& what, const Part& part) {
  const auto type = static_cast<khoroDataType_t>(what.dtype);
  const auto [rank, in, out, comm, stream] = part;
  (void)khoroGroupStart();
  const khoroResult_t sent = khoroSend(in, what.count, type, right_of(what, rank), comm, stream);
  const khoroResult_t received =
      khoroRecv(out, what.count, type, left_of(what, rank), comm, stream);
  return first_failure({sent, received, khoroGroupEnd()});
}

/// The same in pieces, each with a tag, that are received from the last to the first: what comes
/// before it is received is kept. So no group is needed if by turns a rank sends first or receives
/// first; unless it sends to itself.
inline khoroResult_t send_around_with_tags(const Case& what, const Part& part) {
  static constexpr std::uint32_t tags[] = {7, 1, UINT32_MAX};
  const std::size_t ends[] = {0, what.count / 3, what.count - what.count / 4, what.count};
  const auto type = static_cast<khoroDataType_t>(what.dtype);
  khoroResult_t result = khoroSuccess;
  const auto send_all = [&] {
    for (std::size_t i = 0; i < 3; ++i)
      result = first_failure(
          {result, khoroSendTag(static_cast<const std::byte*>(part.in) + ends[i] * what.element(),
                                ends[i + 1] - ends[i], type, right_of(what, part.rank), tags[i],
                                part.comm, part.stream)});
  };
  const auto receive_all = [&] {
    for (std::size_t i = 3; i-- > 0;)
      result = first_failure(
          {result, khoroRecvTag(static_cast<std::byte*>(part.out) + ends[i] * what.element(),
                                ends[i + 1] - ends[i], type, left_of(what, part.rank), tags[i],
                                part.comm, part.stream)});
  };
  if (what.ranks == 1) (void)khoroGroupStart();
  if (part.rank % 2 == 0) send_all();
  receive_all();
  if (part.rank % 2 != 0) send_all();
  return what.ranks == 1 ? first_failure({result, khoroGroupEnd()}) : result;
}

/// The same blocks as callers name them.
struct CountsAndPlaces {
  explicit CountsAndPlaces(const std::vector<Block>& blocks) {
    for (const Block& block : blocks) {
      counts.push_back(block.count);
      places.push_back(block.first);
    }
  }
  std::vector<std::size_t> counts, places;
};

/// Of unequal blocks. What a rank's call ignores is null.
inline khoroResult_t make_call_of_blocks(const Case& what, khoroRedOp_t op, const Part& part) {
  const auto type = static_cast<khoroDataType_t>(what.dtype);
  const auto [rank, in, out, comm, stream] = part;
  const Blocks blocks = what.blocks(rank);
  const CountsAndPlaces gives(blocks.input), gets(blocks.output);
  const bool is_root = rank == what.root;
  const auto at_root = [&](const std::vector<std::size_t>& numbers) {
    return is_root ? numbers.data() : nullptr;
  };
  switch (*what.kind) {
    case CollectiveKind::allgather:
      return khoroAllGatherV(in, gives.counts[0], out, gets.counts.data(), gets.places.data(), type,
                             comm, stream);
    case CollectiveKind::reducescatter:
      return khoroReduceScatterV(in, out, gives.counts.data(), type, op, comm, stream);
    case CollectiveKind::gather:
      return khoroGatherV(in, gives.counts[0], out, at_root(gets.counts), at_root(gets.places),
                          type, what.root, comm, stream);
    case CollectiveKind::scatter:
      return khoroScatterV(in, at_root(gives.counts), at_root(gives.places), out, gets.counts[0],
                           type, what.root, comm, stream);
    case CollectiveKind::alltoall:
      return khoroAlltoAllV(in, gives.counts.data(), gives.places.data(), out, gets.counts.data(),
                            gets.places.data(), type, comm, stream);
    default:
      throw std::logic_error("no call is known for unequal blocks of that collective");
  }
}

/// Makes the call of a collective on one rank.
inline khoroResult_t make_collective_call(const Case& what, const Part& part) {
  const CaseReduction reduction(what, part.rank, part.comm);
  if (reduction.result() != khoroSuccess) return reduction.result();
  const khoroRedOp_t op = reduction.op();
  if (what.unequal) return make_call_of_blocks(what, op, part);
  const auto type = static_cast<khoroDataType_t>(what.dtype);
  const auto [rank, in, out, comm, stream] = part;
  const std::size_t count = what.count;
  const int root = what.root;
  switch (*what.kind) {
    case CollectiveKind::allreduce:
      return khoroAllReduce(in, out, count, type, op, comm, stream);
    case CollectiveKind::broadcast:
      return khoroBroadcast(in, out, count, type, root, comm, stream);
    case CollectiveKind::allgather:
      return khoroAllGather(in, out, count, type, comm, stream);
    case CollectiveKind::reducescatter:
      return khoroReduceScatter(in, out, count, type, op, comm, stream);
    case CollectiveKind::barrier:
      return khoroBarrier(comm, stream);
    case CollectiveKind::reduce:
      return khoroReduce(in, out, count, type, op, root, comm, stream);
    case CollectiveKind::gather:
      return khoroGather(in, out, count, type, root, comm, stream);
    case CollectiveKind::scatter:
      return khoroScatter(in, out, count, type, root, comm, stream);
    case CollectiveKind::alltoall:
      return khoroAlltoAll(in, out, count, type, comm, stream);
  }
  throw std::logic_error("no call is known for that collective");
}

/// Makes the call on one rank, in no particular way.
inline khoroResult_t make_call(const Case& what, const Part& part) {
  if (what.kind) return make_collective_call(what, part);
  return what.tagged ? send_around_with_tags(what, part) : send_around(what, part);
}

/// Makes the call in the way of the case, and returns when it has ended. The stream is for calls
/// that are made on one.
inline khoroResult_t make_call_its_way(const Case& what, const Part& part) {
  if (what.way == Way::stream)
    return first_failure({make_call(what, part), khoroStreamSynchronize(part.stream)});
  Part now = part;
  now.stream = nullptr;
  if (what.way == Way::blocking) return make_call(what, now);
  (void)khoroGroupStart();
  const khoroResult_t noted = make_call(what, now);
  if (what.way == Way::grouped || noted != khoroSuccess)
    return first_failure({noted, khoroGroupEnd()});
  khoroPlan_t plan = nullptr;
  const khoroResult_t kept = khoroPlanCreate(&plan);
  if (kept != khoroSuccess) return kept;
  const khoroResult_t launched = khoroPlanLaunch(plan, nullptr);
  return khoroPlanDestroy(plan) == khoroSuccess ? launched : khoroInternalError;
}

}  // namespace khoro::test
