// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace khoro {

/// Where the memory of channels between GPUs lies in what each rank gives for them. A rank gives
/// memory of its GPU and memory of the host, laid out alike: whole pages for each end of each
/// channel, by peer and by number of the channel. The same on all ranks.
struct GpuPlaces {
  static constexpr std::uint64_t page = 4096;

  /// Channels from one rank to another that are alike, and the bytes of one at its receiver and at
  /// its sender: whole pages.
  struct Kind {
    int channels = 0;
    std::uint64_t at_receiver = 0;
    std::uint64_t at_sender = 0;
  };

  int ranks = 1;
  Kind first;  // their numbers come before those of the others
  Kind others;

  static constexpr std::uint64_t to_page(std::uint64_t bytes) noexcept {
    return (bytes + page - 1) / page * page;
  }
  constexpr const Kind& kind(int channel) const noexcept {
    return channel < first.channels ? first : others;
  }
  /// In what `rank` gives: as receiver, of the channel from `peer`; and as sender, of that to it.
  constexpr std::uint64_t receiver(int rank, int peer, int channel) const noexcept {
    return offset(&Kind::at_receiver, place_of(peer, rank), channel);
  }
  constexpr std::uint64_t sender(int rank, int peer, int channel) const noexcept {
    return offset(&Kind::at_receiver, ranks - 1, 0) +
           offset(&Kind::at_sender, place_of(peer, rank), channel);
  }
  constexpr std::uint64_t bytes() const noexcept {
    return offset(&Kind::at_receiver, ranks - 1, 0) + offset(&Kind::at_sender, ranks - 1, 0);
  }

 private:
  /// A rank gives nothing for itself.
  static constexpr int place_of(int peer, int rank) noexcept {
    return peer < rank ? peer : peer - 1;
  }
  constexpr std::uint64_t offset(std::uint64_t Kind::*bytes, int peers,
                                 int channels) const noexcept {
    const int of_first = peers * first.channels + std::min(channels, first.channels);
    const int of_others = peers * others.channels + std::max(channels - first.channels, 0);
    return static_cast<std::uint64_t>(of_first) * first.*bytes +
           static_cast<std::uint64_t>(of_others) * others.*bytes;
  }
};

}  // namespace khoro
