// SPDX-License-Identifier: Apache-2.0
// The collectives whose blocks may differ in length.
#include <cstddef>
#include <memory>
#include <vector>

#include "api/submit.h"
#include "base/hash.h"

using khoro::Block;
using khoro::Blocks;
using khoro::Call;
using khoro::CallKind;
using khoro::guard;

namespace {

struct Place {
  int rank;
  std::size_t ranks;
};

Place place_in(khoroComm_t comm) {
  const auto pin = khoro::handles().pin(comm);
  const khoro::Communicator& communicator = pin.made();
  return {communicator.rank(), static_cast<std::size_t>(communicator.ranks())};
}

/// None if an array is missing, which is refused with the call.
std::vector<Block> blocks_at(const size_t* counts, const size_t* displacements, std::size_t ranks) {
  std::vector<Block> blocks;
  if (!counts || !displacements) return blocks;
  for (std::size_t rank = 0; rank < ranks; ++rank)
    blocks.push_back({displacements[rank], counts[rank]});
  return blocks;
}

std::vector<Block> blocks_in_a_row(const size_t* counts, std::size_t ranks) {
  std::vector<Block> blocks;
  if (!counts) return blocks;
  std::size_t first = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    blocks.push_back({first, counts[rank]});
    first += counts[rank];
  }
  return blocks;
}

/// What all ranks know of blocks: their lengths, but not where each rank lays them.
void sign(khoro::Signature& signature, const std::vector<Block>& blocks) {
  std::uint64_t hash = 0;
  for (const Block& block : blocks) {
    hash = khoro::combine(hash, block.count);
    signature.count += block.count;
  }
  signature.peer = static_cast<std::int32_t>(hash >> 33);
}

}  // namespace

khoroResult_t khoroAllGatherV(const void* sendbuff, size_t sendcount, void* recvbuff,
                              const size_t* recvcounts, const size_t* recvdispls,
                              khoroDataType_t datatype, khoroComm_t comm, khoroStream_t stream) {
  return guard([&] {
    Call call{{CallKind::allgatherv, khoro::dtype(datatype)}, khoro::buffers(sendbuff, recvbuff)};
    Blocks blocks{{{0, sendcount}}, blocks_at(recvcounts, recvdispls, place_in(comm).ranks)};
    sign(call.signature, blocks.output);
    call.blocks = std::make_shared<const Blocks>(std::move(blocks));
    khoro::submit(comm, stream, std::move(call));
  });
}

khoroResult_t khoroReduceScatterV(const void* sendbuff, void* recvbuff, const size_t* recvcounts,
                                  khoroDataType_t datatype, khoroRedOp_t op, khoroComm_t comm,
                                  khoroStream_t stream) {
  return guard([&] {
    const Place place = place_in(comm);
    Call call{{CallKind::reducescatterv, khoro::dtype(datatype), khoro::reduction(op)},
              khoro::buffers(sendbuff, recvbuff)};
    Blocks blocks{blocks_in_a_row(recvcounts, place.ranks), {}};
    if (recvcounts) blocks.output = {{0, recvcounts[place.rank]}};
    sign(call.signature, blocks.input);
    call.blocks = std::make_shared<const Blocks>(std::move(blocks));
    khoro::submit(comm, stream, op, std::move(call));
  });
}

khoroResult_t khoroGatherV(const void* sendbuff, size_t sendcount, void* recvbuff,
                           const size_t* recvcounts, const size_t* recvdispls,
                           khoroDataType_t datatype, int root, khoroComm_t comm,
                           khoroStream_t stream) {
  return guard([&] {
    const Place place = place_in(comm);
    Call call{{CallKind::gatherv, khoro::dtype(datatype), {}, root},
              khoro::buffers(sendbuff, recvbuff)};
    Blocks blocks{{{0, sendcount}}, {}, true};
    if (place.rank == root) blocks.output = blocks_at(recvcounts, recvdispls, place.ranks);
    call.blocks = std::make_shared<const Blocks>(std::move(blocks));
    khoro::submit(comm, stream, std::move(call));
  });
}

khoroResult_t khoroScatterV(const void* sendbuff, const size_t* sendcounts,
                            const size_t* senddispls, void* recvbuff, size_t recvcount,
                            khoroDataType_t datatype, int root, khoroComm_t comm,
                            khoroStream_t stream) {
  return guard([&] {
    const Place place = place_in(comm);
    Call call{{CallKind::scatterv, khoro::dtype(datatype), {}, root},
              khoro::buffers(sendbuff, recvbuff)};
    Blocks blocks{{}, {{0, recvcount}}, true};
    if (place.rank == root) blocks.input = blocks_at(sendcounts, senddispls, place.ranks);
    call.blocks = std::make_shared<const Blocks>(std::move(blocks));
    khoro::submit(comm, stream, std::move(call));
  });
}

khoroResult_t khoroAlltoAllV(const void* sendbuff, const size_t* sendcounts,
                             const size_t* senddispls, void* recvbuff, const size_t* recvcounts,
                             const size_t* recvdispls, khoroDataType_t datatype, khoroComm_t comm,
                             khoroStream_t stream) {
  return guard([&] {
    const std::size_t ranks = place_in(comm).ranks;
    Call call{{CallKind::alltoallv, khoro::dtype(datatype)}, khoro::buffers(sendbuff, recvbuff)};
    Blocks blocks{blocks_at(sendcounts, senddispls, ranks),
                  blocks_at(recvcounts, recvdispls, ranks), true};
    call.blocks = std::make_shared<const Blocks>(std::move(blocks));
    khoro::submit(comm, stream, std::move(call));
  });
}
