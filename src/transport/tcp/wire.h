// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/dtype.h"

namespace khoro::tcp {

/// What goes over the sockets between two ranks, in both directions alike. All channels of the pair
/// share its stripes. The first stripe carries frames: a header, and the payload of a message up to
/// its first cut. What lies behind a cut goes over the other stripes, bare: the headers say in
/// which order. Whatever is read from a socket is checked before it is used.
enum class FrameKind : std::uint8_t {
  data = 1,    // a message
  put = 2,     // a message that fills the oldest window
  credit = 3,  // releases were told
  offer = 4,   // a window was lent
  open = 5,    // the receiver of a channel is there
  attach = 6,  // the sender is there: it can be offered windows
};

struct Header {
  static constexpr std::uint16_t expected_mark = 0x4b54;

  std::uint16_t mark;
  FrameKind kind;
  std::uint8_t index;  // of the channel
  Form form;
  std::uint8_t reserved[3];
  std::uint32_t digest;
  /// The low bits of the message's number; of an open: its slots.
  std::uint32_t number;
  /// Of the payload or the window; of an open: of a slot.
  std::uint64_t bytes;
  /// The low bits of how many messages of the channel the other way, with the same index, the
  /// sending rank has released.
  std::uint32_t releases;
  std::uint32_t reserved_too;

  static Header make(FrameKind kind, std::uint8_t index) noexcept {
    Header header{};
    header.mark = expected_mark;
    header.kind = kind;
    header.index = index;
    return header;
  }
  bool plausible() const noexcept {
    return mark == expected_mark && kind >= FrameKind::data && kind <= FrameKind::attach &&
           static_cast<std::uint8_t>(form) <= 1;
  }
};
static_assert(sizeof(Header) == 32 && std::is_trivially_copyable_v<Header>);
static_assert(std::endian::native == std::endian::little, "headers are little-endian");

/// A count of which the low bits came, and which never goes back.
constexpr std::uint64_t widen(std::uint64_t known, std::uint32_t low) noexcept {
  return known + static_cast<std::uint32_t>(low - static_cast<std::uint32_t>(known));
}

inline constexpr std::size_t most_stripes = 16;
inline constexpr std::uint32_t max_slots = 1024;
inline constexpr std::uint32_t max_slot_bytes = 1u << 30;

/// How a payload is cut: both ends come to the same from its size alone.
struct Cut {
  std::size_t bytes = 0;
  std::size_t part = 0;   // bytes of each part but the last
  std::size_t parts = 0;  // of which part i goes over stripe i

  /// A smaller part would cost more in calls than it gains.
  static constexpr std::size_t least_part = 16'384;

  constexpr Cut(std::size_t payload, std::size_t stripes) noexcept : bytes(payload) {
    const std::size_t most = std::clamp<std::size_t>(payload / least_part, 1, stripes);
    part = ((payload + most - 1) / most + 63) / 64 * 64;
    parts = payload == 0 ? 0 : (payload + part - 1) / part;
  }
  constexpr std::size_t first(std::size_t i) const noexcept { return i * part; }
  constexpr std::size_t size(std::size_t i) const noexcept {
    return std::min(part, bytes - i * part);
  }
};

/// Releases are told in batches of so many, unless messages the other way carry them. A channel has
/// as many more lines than slots as may be withheld: see shm/layout.h, where it is shown why no
/// sender sleeps for a release that is withheld. A credit costs a system call, so batches are long.
constexpr std::uint32_t release_batch(std::uint32_t slots) noexcept {
  return slots < 8 ? 1 : slots;
}
constexpr std::uint32_t lines_of(std::uint32_t slots) noexcept {
  return slots + release_batch(slots) - 1;
}

}  // namespace khoro::tcp
