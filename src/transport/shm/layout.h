// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "transport/channel.h"
#include "transport/transport.h"

namespace khoro::shm {

/// What lies in the channel area of a rank's shared memory. It is written by processes that are
/// trusted to share the job but not to be in their right mind: whatever is read here is checked
/// before it is used, and read once, because it may change in between.
///
/// First a directory of byte offsets into the area, one per index and source rank (0: not open),
/// then the blocks of the channels whose receiver is this rank:
///
///     info | credit | offers | message lines | large bodies | parts | small bodies, page-aligned
///
/// A message of a few bytes travels in its line alone, so that it costs one cache line. Each line
/// has a small body and a large one. Before the large ones are used, messages that are not small
/// share the parts, where the sender has them follow each other, each on a multiple of its size,
/// which counts as a power of two.

inline constexpr std::uint64_t page_bytes = 4096;
inline constexpr std::size_t inline_bytes = 40;
inline constexpr std::uint64_t indices = 256;
inline constexpr std::uint32_t max_slots = 1024;
inline constexpr std::uint32_t max_slot_bytes = 1u << 30;

constexpr std::uint64_t to_pages(std::uint64_t bytes) noexcept {
  return (bytes + page_bytes - 1) / page_bytes * page_bytes;
}

/// Releases are told in batches of so many.
constexpr std::uint32_t release_batch(std::uint32_t slots) noexcept {
  return std::max(slots / 4, 1u);
}

/// A channel of D slots has as many lines and bodies more than D as releases may be withheld.
///
/// So a withheld release is never what a sender sleeps for: it lacks credit only if its published
/// messages exceed the releases it was told of by D + batch - 1. At most batch - 1 releases are
/// withheld, so D messages or more are truly unreleased, and a sender of a plan proved with D slots
/// would wait as well. The release that leaves fewer than D makes the batch full and is told: by an
/// exchange, followed by a ring of the sender's doorbell. With fewer than 8 slots the batch is 1
/// and D is exact, so that what is proved to hang with a small D does hang.
constexpr std::uint32_t lines_of(std::uint32_t slots) noexcept {
  return slots + release_batch(slots) - 1;
}

/// Number and digest in one word. Lines start zeroed, messages are numbered from 1, and a line only
/// ever holds message k or the one that was there a whole round earlier, so 32 bits do not alias.
constexpr std::uint64_t header(std::uint64_t number, std::uint32_t digest) noexcept {
  return number << 32 | digest;
}
constexpr std::uint32_t number_of(std::uint64_t header) noexcept {
  return static_cast<std::uint32_t>(header >> 32);
}
constexpr std::uint32_t digest_of(std::uint64_t header) noexcept {
  return static_cast<std::uint32_t>(header);
}

/// Where a message's payload is. What stands in its line for a reference, and in an offer for a
/// window, is an address between ranks of one process, else an offset in the arena of the sender,
/// or the receiver. `elsewhere` is an address in the sender's private memory, from which the kernel
/// copies.
enum class Place : std::uint8_t {
  line = 1,
  body = 2,
  reference = 3,
  window = 4,
  part = 5,
  large = 6,
  elsewhere = 7
};

/// Place, form, whether it fills a window, and size in one word.
struct Meta {
  std::uint64_t bytes = 0;
  Place place = Place::line;
  Form form = Form::dtype;
  bool put = false;

  static constexpr std::uint64_t max_bytes = (std::uint64_t{1} << 48) - 1;

  constexpr std::uint64_t pack() const noexcept {
    return bytes | std::uint64_t{static_cast<std::uint8_t>(place)} << 48 |
           std::uint64_t{static_cast<std::uint8_t>(form)} << 56 | std::uint64_t{put} << 57;
  }
  static constexpr Meta unpack(std::uint64_t word) noexcept {
    return {word & max_bytes, static_cast<Place>(word >> 48 & 0xff),
            static_cast<Form>(word >> 56 & 1), (word >> 57 & 1) != 0};
  }
};

/// One message, written by the sender. `header` is published last (pairs with try_observe()).
struct alignas(64) MessageLine {
  std::atomic<std::uint64_t> header;
  std::atomic<std::uint64_t> meta;
  alignas(16) std::byte payload[inline_bytes];
  /// How many messages the sender's rank has released of the channel the other way: see Partner.
  std::atomic<std::uint64_t> releases;
};

/// What the two ends of one rank on channels of the same index from and to one peer tell each
/// other, so that messages one way carry the releases of the other way. A rank that answers every
/// message thus hardly ever reads the credit line, which costs a miss. It is a hint: releases are
/// told in the credit line too, for a sender may need them before it receives anything. Each end
/// may have a thread of its own.
struct Partner {
  std::atomic<std::uint64_t> released{0};  // by the receiver, for the sender to pass on
  std::atomic<std::uint64_t> told{0};      // by the peer's messages, for the sender to use
};

/// One window, written by the receiver. `number` is published last (pairs with try_window()).
struct alignas(64) OfferLine {
  std::atomic<std::uint64_t> number;
  std::atomic<std::uint64_t> place;  // and 1; 0: the sender cannot reach it
  std::atomic<std::uint64_t> bytes;
};

/// The shape, written by the receiver before the directory names the block.
struct alignas(128) Info {
  std::atomic<std::uint32_t> slots;
  std::atomic<std::uint32_t> slot_bytes;
  std::atomic<std::uint32_t> parts_bytes;
  /// The receiver has the arena of the sender's process mapped; the kernel lets it read the rest.
  std::atomic<std::uint32_t> sees_arena;
  std::atomic<std::uint32_t> reads_rest;
  /// The kernel lets it no more: it waits for what it could not read to be put into slots.
  std::atomic<std::uint32_t> refused;
  /// Written by the sender when it has failed: what it has lent is not there any more.
  std::atomic<std::uint32_t> withdrawn;
};

/// How many messages were released, written by the receiver. Apart from lines that the sender
/// writes, also for processors that fetch lines in pairs.
struct alignas(128) Credit {
  std::atomic<std::uint64_t> released;
};

static_assert(sizeof(MessageLine) == 64 && sizeof(OfferLine) == 64);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

/// The parts of a channel's block.
struct Block {
  Info* info = nullptr;
  Credit* credit = nullptr;
  OfferLine* offers = nullptr;
  MessageLine* lines = nullptr;
  std::byte* bodies = nullptr;
  std::byte* parts = nullptr;
  std::byte* large = nullptr;
  std::uint64_t stride = 0;
  std::uint64_t large_stride = 0;

  static constexpr std::uint64_t lines_offset(ChannelShape shape) noexcept {
    return sizeof(Info) + sizeof(Credit) + (sizeof(OfferLine) * shape.slots + 127) / 128 * 128;
  }
  static constexpr bool has_large(ChannelShape shape) noexcept {
    return shape.slot_bytes > shape.small_bytes();
  }
  static constexpr std::uint64_t large_stride_of(ChannelShape shape) noexcept {
    return has_large(shape) ? to_pages(shape.slot_bytes) : 0;
  }
  static constexpr std::uint64_t large_offset(ChannelShape shape) noexcept {
    return to_pages(lines_offset(shape) + sizeof(MessageLine) * lines_of(shape.slots));
  }
  static constexpr std::uint64_t parts_offset(ChannelShape shape) noexcept {
    return large_offset(shape) + large_stride_of(shape) * lines_of(shape.slots);
  }
  static constexpr std::uint64_t bodies_offset(ChannelShape shape) noexcept {
    return parts_offset(shape) + (has_large(shape) ? shape.parts_bytes : 0);
  }
  static constexpr std::uint64_t bytes(ChannelShape shape) noexcept {
    return bodies_offset(shape) + to_pages(shape.small_bytes()) * lines_of(shape.slots);
  }

  static Block at(std::byte* base, ChannelShape shape) noexcept {
    return {reinterpret_cast<Info*>(base),
            reinterpret_cast<Credit*>(base + sizeof(Info)),
            reinterpret_cast<OfferLine*>(base + sizeof(Info) + sizeof(Credit)),
            reinterpret_cast<MessageLine*>(base + lines_offset(shape)),
            base + bodies_offset(shape),
            base + parts_offset(shape),
            base + large_offset(shape),
            to_pages(shape.small_bytes()),
            large_stride_of(shape)};
  }

  /// Where a payload lies that has the body of its line for itself, and what that is called.
  std::byte* body(std::uint64_t line, std::uint64_t bytes) const noexcept {
    return place_of(bytes) == Place::body ? bodies + line * stride : large + line * large_stride;
  }
  Place place_of(std::uint64_t bytes) const noexcept {
    return bytes <= stride || large_stride == 0 ? Place::body : Place::large;
  }
};

}  // namespace khoro::shm
