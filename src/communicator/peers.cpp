// SPDX-License-Identifier: Apache-2.0
#include "communicator/peers.h"

#include <fmt/format.h>

namespace khoro {

std::optional<Cause> Peers::notice(int rank) const noexcept {
  const RankPage& page = this->page(rank);
  if (!page.posted()) return std::nullopt;
  return page.notice(ranks());
}

std::optional<Peers::Notice> Peers::first_notice() const noexcept {
  for (int rank = 0; rank < ranks(); ++rank) {
    if (rank == rank_) continue;
    if (const auto cause = notice(rank)) return Notice{*cause, rank};
  }
  return std::nullopt;
}

void Peers::ring() const noexcept {
  for (int rank = 0; rank < ranks(); ++rank)
    if (rank != rank_) members_[rank].doorbell.ring();
}

std::string Peers::who(int rank) const {
  if (rank < 0 || rank >= ranks()) return "a rank";
  return fmt::format("rank {} (pid {})", rank, members_[rank].pid);
}

}  // namespace khoro
