// SPDX-License-Identifier: Apache-2.0
#pragma once

// What lies in memory that the kernels of two ranks reach, and what each of them keeps of it: the
// same slots and credits as every transport has, as plain structs that a kernel can poll.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/device.h"
#include "base/dtype.h"

namespace khoro::gpu {

/// What stands before a message. Each word carries the message's number, and the first tells that
/// all else of a message is there, unless its payload is in flagged words. A slot holds message k
/// or k - D, so numbers never alias.
struct alignas(16) Head {
  std::uint64_t first;   // number and digest
  std::uint64_t second;  // number and Meta
};

/// A payload's size, the form of its elements, and how it travels.
struct Meta {
  /// In the slot's body, before the head; in words with a flag each, which need no order; or not at
  /// all: the body begins with the address at which the receiver finds it.
  enum class Place : std::uint8_t { body, words, elsewhere };

  std::uint32_t bytes = 0;
  Form form = Form::dtype;
  Place place = Place::body;

  static constexpr std::uint32_t max_bytes = (1u << 29) - 1;

  KHORO_HD std::uint32_t pack() const noexcept {
    return bytes | static_cast<std::uint32_t>(form == Form::carry) << 29 |
           static_cast<std::uint32_t>(place) << 30;
  }
  KHORO_HD static Meta unpack(std::uint32_t word) noexcept {
    return {word & max_bytes, (word >> 29 & 1) != 0 ? Form::carry : Form::dtype,
            static_cast<Place>(word >> 30)};
  }
};

KHORO_HD constexpr std::uint64_t numbered(std::uint64_t number, std::uint32_t low) noexcept {
  return number << 32 | low;
}
KHORO_HD constexpr bool has_number(std::uint64_t word, std::uint64_t number) noexcept {
  return word >> 32 == (number & 0xffffffff);
}

/// Four bytes of payload, and the number of their message in the upper half.
using FlaggedWord = std::uint64_t;

/// A flag is 32 bits of a number, and a word that long messages alone use keeps an old one. So
/// every so many messages each slot has all of its words written, and no flag grows so old that it
/// could be taken for a new one.
constexpr std::uint64_t flags_renewed_every = std::uint64_t{1} << 31;

/// A window that the receiver lends, told in the sender's memory. `number` is written last.
struct alignas(16) Offer {
  std::uint64_t number;
  std::uint64_t bytes;
  std::byte* data;  // as kernels of the sender reach it; null: a slot is filled in its place
};

/// How a channel's memory is laid out, as both ends know it.
struct Layout {
  std::uint32_t slots = 8;            // D
  std::uint32_t slot_bytes = 65'536;  // a multiple of 16
  std::uint32_t flagged_bytes =
      4096;  // most payload of a message in flagged words; a multiple of 4

  /// In the receiver's memory: heads, flagged words, bodies. It starts as zeros.
  constexpr std::uint64_t words_offset() const noexcept { return slots * sizeof(Head); }
  constexpr std::uint64_t words_of_slot() const noexcept { return flagged_bytes / 4; }
  constexpr std::uint64_t bodies_offset() const noexcept {
    return to_line(words_offset() + slots * words_of_slot() * sizeof(FlaggedWord));
  }
  constexpr std::uint64_t receiver_bytes() const noexcept {
    return to_line(bodies_offset() + std::uint64_t{slots} * slot_bytes);
  }
  /// In the sender's: the number of messages released, then offers. It starts as zeros.
  constexpr std::uint64_t offers_offset() const noexcept { return line; }
  constexpr std::uint64_t sender_bytes() const noexcept {
    return to_line(offers_offset() + slots * sizeof(Offer));
  }

  static constexpr std::uint64_t line = 128;
  static constexpr std::uint64_t to_line(std::uint64_t bytes) noexcept {
    return (bytes + line - 1) / line * line;
  }
};

/// One end of a channel. Its addresses are those that kernels of its rank's device use. It is kept
/// from launch to launch, and belongs to one lane.
struct End {
  static constexpr std::uint32_t most_windows = 64;

  Head* heads = nullptr;
  FlaggedWord* words = nullptr;
  std::byte* bodies = nullptr;
  std::uint64_t* released = nullptr;
  Offer* offers = nullptr;
  Layout layout;
  /// The GPU of the other end, a bit of Call::reached_by, if its kernels take addresses of this
  /// process; else 0.
  std::uint64_t peer_device = 0;
  std::uint64_t number = 0;   // of the last message published, or released
  std::uint64_t windows = 0;  // filled, or taken
  std::uint64_t offered = 0;  // windows, by a receiver
  std::uint64_t credit = 0;   // what a sender has last seen of `released`
  // Of the message that is observed, or acquired.
  std::byte* room = nullptr;
  std::uint32_t bytes = 0;
  Form form = Form::dtype;
  bool flagged = false;
  bool elsewhere = false;  // the room is memory that this rank, or the peer, has lent
  bool staged = false;     // the room is the block's own

  KHORO_HD std::uint32_t slot(std::uint64_t of) const noexcept {
    return static_cast<std::uint32_t>((of - 1) % layout.slots);
  }
  KHORO_HD Head& head(std::uint64_t of) const noexcept { return heads[slot(of)]; }
  KHORO_HD std::byte* body(std::uint64_t of) const noexcept {
    return bodies + std::uint64_t{slot(of)} * layout.slot_bytes;
  }
  KHORO_HD FlaggedWord* flagged_words(std::uint64_t of) const noexcept {
    return words + slot(of) * (layout.flagged_bytes / 4);
  }
  KHORO_HD bool renews_flags(std::uint64_t of) const noexcept {
    return of % flags_renewed_every < layout.slots;
  }
};
static_assert(std::is_trivially_copyable_v<End>);

/// The ends of a channel over memory of its receiver and its sender, each as the kernels of the
/// end's own device reach it.
inline End end_at(const Layout& layout, std::byte* receiver_memory,
                  std::byte* sender_memory) noexcept {
  End end;
  end.layout = layout;
  end.heads = reinterpret_cast<Head*>(receiver_memory);
  end.words = reinterpret_cast<FlaggedWord*>(receiver_memory + layout.words_offset());
  end.bodies = receiver_memory + layout.bodies_offset();
  end.released = reinterpret_cast<std::uint64_t*>(sender_memory);
  end.offers = reinterpret_cast<Offer*>(sender_memory + layout.offers_offset());
  return end;
}

}  // namespace khoro::gpu
