// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/doorbell.h"
#include "communicator/rank_page.h"

namespace khoro {

/// What the ranks of a communicator show each other beside messages: rank pages and doorbells, by
/// rank, this rank's own among them. A virtual world overrides what travels as a control message,
/// to delay it. Borrows the pages. Thread-safe; nothing here blocks.
class Peers {
 public:
  struct Member {
    const RankPage* page = nullptr;
    Doorbell doorbell;
    std::int32_t pid = 0;
    bool same_process = false;
  };

  Peers(int rank, std::vector<Member> members) : rank_(rank), members_(std::move(members)) {}
  virtual ~Peers() = default;
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  int rank() const noexcept { return rank_; }
  int ranks() const noexcept { return static_cast<int>(members_.size()); }
  const RankPage& page(int rank) const noexcept { return *members_[rank].page; }
  bool same_process(int rank) const noexcept { return members_[rank].same_process; }
  std::int32_t pid(int rank) const noexcept { return members_[rank].pid; }

  /// What rank `rank` told the others.
  virtual std::optional<Cause> notice(int rank) const noexcept;
  /// It has left in order.
  virtual bool closed(int rank) const noexcept { return page(rank).closed(); }

  struct Notice {
    Cause cause;
    int reporter = -1;
  };
  /// The notice of the lowest other rank that has posted one. One load per rank while there is
  /// none.
  std::optional<Notice> first_notice() const noexcept;

  /// Wakes every other rank, after what they shall see was made visible by an exchange.
  void ring() const noexcept;

  /// "rank 2 (pid 1234)"
  std::string who(int rank) const;

 private:
  int rank_;
  std::vector<Member> members_;
};

}  // namespace khoro
