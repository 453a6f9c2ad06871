// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "communicator/peers.h"

namespace khoro::test {

/// The pages of some ranks in plain memory, written as the ranks would, seen by rank 0.
struct RankPages {
  explicit RankPages(int count) {
    std::vector<Peers::Member> members;
    for (int rank = 0; rank < count; ++rank) {
      pages.push_back(std::make_unique<RankPage>(RankPage::Identity()));
      members.push_back(
          {pages.back().get(), Doorbell(pages.back()->doorbell(), -1), 100 + rank, false});
    }
    peers = std::make_unique<Peers>(0, std::move(members));
  }

  RankPage& page(int rank) { return *pages[static_cast<std::size_t>(rank)]; }

  /// Collective `number` begins.
  void call(int rank, std::uint64_t number, Signature signature, std::uint64_t plan = 1) {
    CallRecord record;
    record.number = number;
    record.signature = signature;
    record.plan_hash = plan;
    page(rank).begin(record);
  }
  /// The next collective begins and ends.
  void done(int rank, Signature signature) {
    const std::uint64_t number = page(rank).calls() + 1;
    call(rank, number, signature);
    page(rank).finish(number);
  }
  /// A send or receive begins, alone or beside others; returns its place.
  std::uint64_t message(int rank, Signature signature, std::uint64_t number = 1,
                        std::uint32_t tag = 0) {
    CallRecord record;
    record.number = number;
    record.signature = signature;
    record.tag = tag;
    return page(rank).begin_message(record);
  }

  std::vector<std::unique_ptr<RankPage>> pages;
  std::unique_ptr<Peers> peers;
};

constexpr Signature sum_of(std::uint64_t count) {
  return {CallKind::allreduce, Dtype::f32, Reduction::sum, 0, count};
}
/// Of that many elements in all; all ranks know how they are dealt out.
constexpr Signature blocks_of(std::uint64_t count, int dealt) {
  return {CallKind::allgatherv, Dtype::f32, Reduction::sum, dealt, count};
}
constexpr Signature broadcast_of(std::uint64_t count, int root) {
  return {CallKind::broadcast, Dtype::f32, Reduction::sum, root, count};
}
constexpr Signature send_to(int peer, std::uint64_t count = 4) {
  return {CallKind::send, Dtype::i32, Reduction::sum, peer, count};
}
constexpr Signature recv_from(int peer, std::uint64_t count = 4) {
  return {CallKind::recv, Dtype::i32, Reduction::sum, peer, count};
}

}  // namespace khoro::test
