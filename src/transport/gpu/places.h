// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace khoro {

/// Where the memory of channels between GPUs lies in what each rank gives for them. A rank gives
/// memory of its GPU and memory of the host, laid out alike: whole pages for each end of each
/// channel, by peer and by number of the channel. The same on all ranks.
struct GpuPlaces {
  static constexpr std::uint64_t page = 4096;

  int ranks = 1;
  int channels = 1;                  // from one rank to another
  std::uint64_t receiver_bytes = 0;  // of one channel, at its receiver; whole pages
  std::uint64_t sender_bytes = 0;    // at its sender; whole pages

  static constexpr std::uint64_t to_page(std::uint64_t bytes) noexcept {
    return (bytes + page - 1) / page * page;
  }
  /// At the receiver, of the channel from `peer`; and at the sender, of that to `peer`.
  constexpr std::uint64_t receiver(int peer, int channel) const noexcept {
    return number(peer, channel) * receiver_bytes;
  }
  constexpr std::uint64_t sender(int peer, int channel) const noexcept {
    return number(ranks, 0) * receiver_bytes + number(peer, channel) * sender_bytes;
  }
  constexpr std::uint64_t bytes() const noexcept { return sender(ranks, 0); }

 private:
  constexpr std::uint64_t number(int peer, int channel) const noexcept {
    return static_cast<std::uint64_t>(peer) * static_cast<std::uint64_t>(channels) +
           static_cast<std::uint64_t>(channel);
  }
};

}  // namespace khoro
