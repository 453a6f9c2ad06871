// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "transport/tcp/ring.h"
#include "transport/tcp/wire.h"

namespace khoro::tcp {

/// Which messages of a sender the sockets have taken whole, so that their memory is free again.
class Ledger {
 public:
  explicit Ledger(std::uint32_t lines) : pieces_(lines) {}

  /// A piece of message `number` has to wait; the message is among the last `lines`.
  void waits(std::uint64_t number) noexcept {
    ++pieces_[number % pieces_.size()];
    ++waiting_;
  }
  void written(std::uint64_t number) noexcept {
    --pieces_[number % pieces_.size()];
    --waiting_;
  }
  bool all_written() const noexcept { return waiting_ == 0; }
  /// Messages up to this one are written, of those published.
  std::uint64_t written_up_to(std::uint64_t published) noexcept {
    if (waiting_ == 0) return written_ = published;
    // What lies further back has been released.
    if (published > pieces_.size()) written_ = std::max(written_, published - pieces_.size());
    while (written_ < published && pieces_[(written_ + 1) % pieces_.size()] == 0) ++written_;
    return written_;
  }

 private:
  std::vector<std::uint8_t> pieces_;
  std::uint32_t waiting_ = 0;
  std::uint64_t written_ = 0;
};

/// Bytes to be sent, which stay where they are until they are: borrowed, or a header of its own.
struct Piece {
  const std::byte* data = nullptr;  // null: the header
  std::size_t bytes = 0;
  Ledger* ledger = nullptr;  // of who lends the bytes; null for a header of its own
  std::uint64_t number = 0;  // of the message
  Header header = {};

  const std::byte* begin() const noexcept {
    return data != nullptr ? data : reinterpret_cast<const std::byte*>(&header);
  }
};

/// What came of a call of a socket.
struct Passed {
  std::size_t bytes = 0;
  bool broken = false;  // it has ended or failed, for good
};

/// A connected stream socket and what waits to be sent over it. Borrows the socket. Nothing here
/// blocks; errno is not kept.
class Stripe {
 public:
  explicit Stripe(int socket) noexcept : socket_(socket) {}

  int socket() const noexcept { return socket_; }
  void reserve(std::size_t pieces) { queue_.reserve(pieces); }

  /// Sends at once what the socket takes, and queues the rest. False: the socket is broken, or more
  /// was to be queued than was reserved.
  bool send(std::span<const Piece> pieces) noexcept;
  /// Sends of the queue what the socket takes. False: it is broken.
  bool flush() noexcept;
  bool blocked() const noexcept { return !queue_.empty(); }
  /// Gives up what waits.
  void drop() noexcept;

  /// Into two places, the one after the other; the second may be empty.
  Passed receive(std::span<std::byte> first, std::span<std::byte> second) noexcept;

  /// Any thread.
  std::uint64_t bytes_sent() const noexcept { return bytes_.load(std::memory_order_relaxed); }

 private:
  Passed write(std::span<const std::span<const std::byte>> parts) noexcept;
  bool queue(const Piece& piece, std::size_t sent) noexcept;

  int socket_;
  Ring<Piece> queue_;
  std::size_t front_sent_ = 0;  // of the first piece that waits
  std::atomic<std::uint64_t> bytes_{0};
};

}  // namespace khoro::tcp
