// SPDX-License-Identifier: Apache-2.0
#include "transport/tcp/stripe.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>

namespace khoro::tcp {
namespace {

constexpr std::size_t most_parts = 16;

/// Nothing is wrong: there is no room, no data or no memory now.
bool is_passing(int error) noexcept {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR || error == ENOBUFS ||
         error == ENOMEM;
}

constexpr int flags = MSG_DONTWAIT | MSG_NOSIGNAL;

// Calls with vectors cost more, and most messages are one piece.

ssize_t send_all_of(int socket, std::span<const std::span<const std::byte>> parts) noexcept {
  iovec vector[most_parts];
  for (std::size_t i = 0; i < parts.size(); ++i)
    vector[i] = {const_cast<std::byte*>(parts[i].data()), parts[i].size()};
  msghdr message{};
  message.msg_iov = vector;
  message.msg_iovlen = parts.size();
  return ::sendmsg(socket, &message, flags);
}

ssize_t receive_into(int socket, std::span<std::byte> first, std::span<std::byte> second) noexcept {
  iovec vector[] = {{first.data(), first.size()}, {second.data(), second.size()}};
  msghdr message{};
  message.msg_iov = vector;
  message.msg_iovlen = 2;
  return ::recvmsg(socket, &message, MSG_DONTWAIT);
}

}  // namespace

Passed Stripe::write(std::span<const std::span<const std::byte>> parts) noexcept {
  const ssize_t sent = parts.size() == 1 ? ::send(socket_, parts[0].data(), parts[0].size(), flags)
                                         : send_all_of(socket_, parts);
  if (sent < 0) return {0, !is_passing(errno)};
  bytes_.store(bytes_sent() + static_cast<std::uint64_t>(sent), std::memory_order_relaxed);
  return {static_cast<std::size_t>(sent), false};
}

bool Stripe::send(std::span<const Piece> pieces) noexcept {
  if (blocked() && !flush()) return false;
  std::size_t sent = 0;
  if (!blocked()) {
    std::span<const std::byte> parts[most_parts];
    for (std::size_t i = 0; i < pieces.size(); ++i) parts[i] = {pieces[i].begin(), pieces[i].bytes};
    const Passed passed = write({parts, pieces.size()});
    if (passed.broken) return false;
    sent = passed.bytes;
  }
  for (const Piece& piece : pieces) {
    const std::size_t of_piece = std::min(sent, piece.bytes);
    sent -= of_piece;
    if (of_piece < piece.bytes && !queue(piece, of_piece)) return false;
  }
  return true;
}

bool Stripe::queue(const Piece& piece, std::size_t sent) noexcept {
  Piece* const queued = queue_.push();
  if (queued == nullptr) return false;
  *queued = piece;
  if (queue_.size() == 1) front_sent_ = sent;
  if (piece.ledger != nullptr) piece.ledger->waits(piece.number);
  return true;
}

bool Stripe::flush() noexcept {
  while (blocked()) {
    std::span<const std::byte> parts[most_parts];
    std::size_t count = 0;
    std::size_t asked = 0;
    for (; count < std::min(most_parts, queue_.size()); ++count) {
      const Piece& piece = queue_[count];
      const std::size_t before = count == 0 ? front_sent_ : 0;
      parts[count] = {piece.begin() + before, piece.bytes - before};
      asked += parts[count].size();
    }
    const Passed passed = write({parts, count});
    if (passed.broken) return false;
    front_sent_ += passed.bytes;
    while (blocked() && front_sent_ >= queue_.front().bytes) {
      const Piece& piece = queue_.front();
      front_sent_ -= piece.bytes;
      if (piece.ledger != nullptr) piece.ledger->written(piece.number);
      queue_.pop();
    }
    if (passed.bytes < asked) return true;
  }
  return true;
}

void Stripe::drop() noexcept {
  for (; blocked(); queue_.pop()) {
    const Piece& piece = queue_.front();
    if (piece.ledger != nullptr) piece.ledger->written(piece.number);
  }
}

Passed Stripe::receive(std::span<std::byte> first, std::span<std::byte> second) noexcept {
  const ssize_t received = second.empty()
                               ? ::recv(socket_, first.data(), first.size(), MSG_DONTWAIT)
                               : receive_into(socket_, first, second);
  if (received < 0) return {0, !is_passing(errno)};
  return {static_cast<std::size_t>(received), received == 0};
}

}  // namespace khoro::tcp
