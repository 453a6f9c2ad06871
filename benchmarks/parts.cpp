// SPDX-License-Identifier: Apache-2.0
#include "parts.h"

#include <cstring>

namespace khoro::benchmark {

Extent whole_to_whole(std::size_t elements, int) {
  return {.send = elements, .recv = elements, .count = elements};
}

Extent share_to_whole(std::size_t elements, int ranks) {
  const std::size_t share = elements / ranks;
  return {.send = share, .recv = share * ranks, .count = share, .send_stride = share};
}

Extent whole_to_share(std::size_t elements, int ranks) {
  const std::size_t share = elements / ranks;
  return {.send = share * ranks, .recv = share, .count = share, .recv_stride = share};
}

Extent shares_to_shares(std::size_t elements, int ranks) {
  const std::size_t share = elements / ranks;
  return {.send = share * ranks, .recv = share * ranks, .count = share};
}

std::vector<Origin> reduced(const Extent& extent, const Place&) {
  return {{Origin::all_ranks, 0, 0, extent.recv}};
}

std::vector<Origin> gathered(const Extent& extent, const Place& at) {
  std::vector<Origin> origins;
  for (int rank = 0; rank < at.ranks; ++rank)
    origins.push_back({rank, 0, extent.send * rank, extent.send});
  return origins;
}

double but_own_share(int ranks) { return 1.0 * (ranks - 1) / ranks; }

khoroResult_t copy(const Call& call, void* to, const void* from, std::size_t bytes) {
  if (!call.copies) {
    std::memcpy(to, from, bytes);
    return khoroSuccess;
  }
  const khoroResult_t result = khoroDeviceCopy(to, from, bytes, call.copies);
  if (result != khoroSuccess || call.stream) return result;
  return khoroStreamSynchronize(call.copies);
}

khoroResult_t exchange(const Call& call, int to, int from) {
  khoroResult_t result = khoroGroupStart();
  if (result != khoroSuccess) return result;
  result = khoroSend(call.send, call.count, call.type, to, call.comm, call.stream);
  if (result == khoroSuccess)
    result = khoroRecv(call.recv, call.count, call.type, from, call.comm, call.stream);
  const khoroResult_t end = khoroGroupEnd();
  return result == khoroSuccess ? end : result;
}

}  // namespace khoro::benchmark
