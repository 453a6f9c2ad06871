// SPDX-License-Identifier: Apache-2.0
// Cases as calls of the C face.
#pragma once

#include <khoro/khoro.h>

#include <cstddef>
#include <stdexcept>
#include <vector>

#include "support/case.h"

namespace khoro::test {

inline khoroResult_t send_around(const Case& what, int rank, const void* in, void* out,
                                 khoroComm_t comm, khoroStream_t stream) {
  const auto type = static_cast<khoroDataType_t>(what.dtype);
  const int next = (rank + 1) % what.ranks;
  const int before = (rank + what.ranks - 1) % what.ranks;
  (void)khoroGroupStart();
  const khoroResult_t sent = khoroSend(in, what.count, type, next, comm, stream);
  const khoroResult_t received = khoroRecv(out, what.count, type, before, comm, stream);
  const khoroResult_t ended = khoroGroupEnd();
  return sent != khoroSuccess ? sent : received != khoroSuccess ? received : ended;
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
inline khoroResult_t make_call_of_blocks(const Case& what, int rank, const void* in, void* out,
                                         khoroComm_t comm, khoroStream_t stream) {
  const auto type = static_cast<khoroDataType_t>(what.dtype);
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
      return khoroReduceScatterV(in, out, gives.counts.data(), type,
                                 static_cast<khoroRedOp_t>(what.reduction), comm, stream);
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

/// Makes the call on one rank, in no particular way.
inline khoroResult_t make_call(const Case& what, int rank, const void* in, void* out,
                               khoroComm_t comm, khoroStream_t stream = nullptr) {
  const auto type = static_cast<khoroDataType_t>(what.dtype);
  const auto op = static_cast<khoroRedOp_t>(what.reduction);
  const std::size_t count = what.count;
  const int root = what.root;
  if (!what.kind) return send_around(what, rank, in, out, comm, stream);
  if (what.unequal) return make_call_of_blocks(what, rank, in, out, comm, stream);
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

/// Makes the call in the way of the case, and returns when it has ended.
inline khoroResult_t make_call_its_way(const Case& what, int rank, const void* in, void* out,
                                       khoroComm_t comm, khoroStream_t stream) {
  if (what.way == Way::blocking) return make_call(what, rank, in, out, comm);
  if (what.way == Way::stream) {
    const khoroResult_t queued = make_call(what, rank, in, out, comm, stream);
    return queued != khoroSuccess ? queued : khoroStreamSynchronize(stream);
  }
  (void)khoroGroupStart();
  const khoroResult_t noted = make_call(what, rank, in, out, comm);
  if (what.way == Way::grouped || noted != khoroSuccess) {
    const khoroResult_t ended = khoroGroupEnd();
    return noted != khoroSuccess ? noted : ended;
  }
  khoroPlan_t plan = nullptr;
  const khoroResult_t kept = khoroPlanCreate(&plan);
  if (kept != khoroSuccess) return kept;
  const khoroResult_t launched = khoroPlanLaunch(plan, nullptr);
  return khoroPlanDestroy(plan) == khoroSuccess ? launched : khoroInternalError;
}

}  // namespace khoro::test
