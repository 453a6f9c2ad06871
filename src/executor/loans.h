// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/device.h"

namespace khoro {

/// A reference that a peer may still read.
struct Loan {
  const std::byte* data = nullptr;
  std::uint64_t bytes = 0;
  std::uint64_t number = 0;  // of the message
  std::uint32_t port = 0;
};

/// What an engine has lent and does not have back. `Room` is an array or a vector of loans, and who
/// adds one sees to that there is room. `is_back(loan)` asks the channel.
template <class Room>
class Loans {
 public:
  KHORO_HD std::uint32_t count() const noexcept { return count_; }
  KHORO_HD const Loan& operator[](std::uint32_t i) const noexcept { return room_[i]; }
  KHORO_HD void add(const Loan& loan) noexcept { room_[count_++] = loan; }

  /// Forgets those that are back.
  template <class IsBack>
  KHORO_HD void take_back(IsBack is_back) noexcept {
    for (std::uint32_t i = 0; i < count_;) {
      if (is_back(room_[i]))
        room_[i] = room_[--count_];
      else
        ++i;
    }
  }
  /// Whether one of them has some of the memory.
  KHORO_HD bool overlap(const std::byte* data, std::uint64_t bytes) const noexcept {
    for (std::uint32_t i = 0; i < count_; ++i)
      if (room_[i].data < data + bytes && data < room_[i].data + room_[i].bytes) return true;
    return false;
  }

  Room& room() noexcept { return room_; }

 private:
  std::uint32_t count_ = 0;
  Room room_;
};

}  // namespace khoro
