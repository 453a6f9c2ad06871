// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

#include "base/interfaces.h"
#include "rendezvous/hmac.h"

namespace khoro {

/// The rendezvous protocol. Every packet is one frame of 256 bytes.
///
///     joiner                                  host
///     hello: rank, nonce               ->
///                                      <-     challenge: nonce
///     proof: HMAC(transcript)          ->
///                                      <-     proof: HMAC(transcript), secret
///     introduction, 5 descriptors      ->
///     facts ...                        ->     (all ranks are here)
///                                      <-     members, their descriptors
///     received                         ->     (until everybody knows everybody)
///                                             (ranks that want stripes connect them: stripes.h)
///     prepared                         ->     (all ranks are prepared)
///                                      <-     complete
///
/// In place of its introduction, or at any time after it, a joiner may leave: it sends `declined`
/// and its reason as `text`. At any time the host may send `failure` and either side may close.
enum class FrameKind : std::uint8_t {
  hello = 1,
  challenge = 2,
  joiner_proof = 3,
  host_proof = 4,
  introduction = 5,
  text = 6,  // a part of the facts, or of a joiner's reason to leave
  members = 7,
  received = 8,
  prepared = 9,
  complete = 10,
  failure = 11,
  declined = 12,
};

/// Versions that this library speaks. The first twelve bytes of a frame and the frames hello and
/// failure keep their meaning in every version, so that two that cannot talk can say so.
inline constexpr std::uint16_t lowest_version = 4;
inline constexpr std::uint16_t highest_version = 4;

struct Frame {
  static constexpr char expected_magic[4] = {'K', 'h', 'o', '\n'};
  static constexpr std::size_t payload_bytes = 240;

  char magic[4];
  std::uint16_t low;
  std::uint16_t high;
  FrameKind kind;
  std::uint8_t more;  // 1: the text goes on in the next frame
  std::uint16_t length;
  std::uint32_t reserved;
  std::array<std::uint8_t, payload_bytes> payload;

  static Frame make(FrameKind kind) noexcept {
    Frame frame{};
    std::memcpy(frame.magic, expected_magic, sizeof expected_magic);
    frame.low = lowest_version;
    frame.high = highest_version;
    frame.kind = kind;
    return frame;
  }
  template <class Payload>
  static Frame make(FrameKind kind, const Payload& payload) noexcept {
    static_assert(std::is_trivially_copyable_v<Payload> && sizeof(Payload) <= payload_bytes);
    Frame frame = make(kind);
    std::memcpy(frame.payload.data(), &payload, sizeof payload);
    frame.length = sizeof payload;
    return frame;
  }
  template <class Payload>
  Payload as() const noexcept {
    static_assert(std::is_trivially_copyable_v<Payload> && sizeof(Payload) <= payload_bytes);
    Payload value;
    std::memcpy(static_cast<void*>(&value), payload.data(), sizeof value);
    return value;
  }
  /// Fit to be looked into, whatever its version.
  bool plausible() const noexcept {
    return std::memcmp(magic, expected_magic, sizeof magic) == 0 && low <= high &&
           length <= payload_bytes && more <= 1 && reserved == 0;
  }
  bool speaks_our_version() const noexcept {
    return low <= highest_version && high >= lowest_version;
  }
  std::string_view text() const noexcept {
    return {reinterpret_cast<const char*>(payload.data()), length};
  }
};
static_assert(sizeof(Frame) == 256 && std::is_trivially_copyable_v<Frame>);
static_assert(std::endian::native == std::endian::little, "frames are little-endian");

inline constexpr std::size_t most_text_bytes = 16 * Frame::payload_bytes;

using Nonce = std::array<std::uint8_t, 32>;

struct Hello {
  std::uint64_t communicator;
  std::uint32_t rank;
  std::uint32_t reserved;
  Nonce nonce;
};
/// The greeting of a stripe, whose handshake goes on as the rendezvous' does.
struct StripeHello {
  std::uint64_t communicator;
  std::uint32_t from;
  std::uint32_t to;
  std::uint32_t stripe;
  std::uint32_t stripes;
  Nonce nonce;
};
struct Challenge {
  Nonce nonce;
};
struct Proof {
  Digest digest;
};
/// The host's proof, and a secret of its meeting, drawn anew. It has only been where the system
/// vouches for the user of both ends: who guesses the key of an id does not know it.
struct HostProof {
  Digest digest;
  Nonce secret;
};
enum HasDescriptor : std::uint32_t {
  has_memory = 1,
  has_doorbell = 2,
  has_pidfd = 4,
  has_arena = 8,
  has_gpu_memory = 16
};
inline constexpr std::size_t most_descriptors_of_rank = 5;
struct Introduced {
  std::uint32_t rank;
  std::uint32_t ranks;
  std::uint64_t process;
  std::int64_t milliseconds_left;  // until the joiner's deadline
  std::uint32_t descriptors;       // HasDescriptor bits, in this order
  std::uint32_t reserved;
  SocketAddress address;  // where its stripes are to be connected to; none if it wants none
};
struct Declined {
  std::uint32_t rank;
  std::uint32_t ranks;
  std::int64_t milliseconds_left;
  std::int32_t code;
  std::uint32_t reserved;
};
struct MemberRecord {
  std::uint32_t rank;
  std::uint32_t descriptors;
  std::uint64_t process;
  SocketAddress address;
};
inline constexpr std::size_t most_records = Frame::payload_bytes / sizeof(MemberRecord);
/// The payload of `failure` is an i32 code followed by text.
inline constexpr std::size_t code_bytes = 4;

/// What a proof is good for, and nothing else.
enum class ProofOf : std::uint8_t { joiner, host, caller, called };

inline std::string_view label_of(ProofOf what) noexcept {
  constexpr std::string_view labels[] = {"khoro rendezvous joiner", "khoro rendezvous host",
                                         "khoro stripe caller", "khoro stripe called"};
  return labels[static_cast<std::size_t>(what)];
}

/// What the two sides prove to have seen. Covers both frames whole, so versions, rank,
/// communicator and both nonces. The side that greets says joiner or caller.
inline Digest joiner_proof(const Key& key, const Frame& hello, const Frame& challenge,
                           ProofOf what = ProofOf::joiner) noexcept {
  return hmac(key, {bytes_of(label_of(what)), bytes_of(hello), bytes_of(challenge)});
}
inline Digest host_proof(const Key& key, const Frame& hello, const Frame& challenge,
                         const Frame& proof, const Nonce& secret) noexcept {
  return hmac(key, {bytes_of(label_of(ProofOf::host)), bytes_of(hello), bytes_of(challenge),
                    bytes_of(proof), secret});
}
inline Digest called_proof(const Key& key, const Frame& hello, const Frame& challenge,
                           const Frame& proof) noexcept {
  return hmac(key, {bytes_of(label_of(ProofOf::called)), bytes_of(hello), bytes_of(challenge),
                    bytes_of(proof)});
}
/// The key that proves on sockets between ranks, which any user can dial.
inline Key stripe_key(const Key& key, const Nonce& secret) noexcept {
  return hmac(key, {bytes_of(std::string_view("khoro stripe key")), secret});
}

}  // namespace khoro
