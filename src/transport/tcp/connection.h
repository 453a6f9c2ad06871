// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "transport/tcp/readiness.h"
#include "transport/tcp/ring.h"
#include "transport/tcp/stripe.h"
#include "transport/tcp/wire.h"
#include "transport/transport.h"

namespace khoro::tcp {

class TcpReceiver;
class TcpSender;

/// Where the next bytes of a stripe belong.
struct Landing {
  std::byte* to = nullptr;
  std::size_t left = 0;
  TcpReceiver* receiver = nullptr;
  std::uint64_t number = 0;  // of the message
};

/// All channels between this rank and one peer, over the stripes between them. Used by the thread
/// that uses the rank's ends. Nothing but opening blocks, allocates or throws.
class Connection {
 public:
  /// Borrows the sockets, which are connected to the peer's in the same order. Throws `Error`.
  Connection(Readiness& readiness, std::span<const int> sockets);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Ok until the peer is gone or has sent what no correct peer sends; then for good.
  Status status() const noexcept { return status_; }
  /// For what is to be sent: closed as soon as the peer takes nothing any more.
  Status sending_status() const noexcept {
    return status_ == Status::ok && mute_ ? Status::closed : status_;
  }

  // The ends open and close here; borrowed. Opening throws bad_alloc.
  void open(std::uint8_t index, TcpSender& sender, ChannelShape shape);
  void open(std::uint8_t index, TcpReceiver& receiver, ChannelShape shape);
  void close(std::uint8_t index, const TcpSender& sender) noexcept;
  void close(std::uint8_t index, const TcpReceiver& receiver) noexcept;
  TcpReceiver* receiver(std::uint8_t index) const noexcept { return receivers_[index]; }

  /// A look of an end that lacks something: takes in what has come, up to the next message of
  /// `wanted`, if it is not null. Keeps errno, as do the others.
  void look(const TcpReceiver* wanted) noexcept;
  /// Sends a frame without payload.
  void tell(const Header& frame) noexcept;
  /// Sends a message: the first piece is its header, and its payload too if that follows in memory;
  /// else that is the second one.
  void send(Piece head, std::span<const std::byte> payload) noexcept;

  /// True when nothing of what was sent waits in this process any more.
  bool flushed() const noexcept;
  /// True when it has left the sockets too.
  bool drained() const noexcept;
  void flush() noexcept;
  /// False: nothing has come.
  bool take_in(const TcpReceiver* wanted) noexcept;
  void fail(Status status) noexcept;

  std::size_t stripes() const noexcept { return stripes_.size(); }
  /// Any thread.
  std::uint64_t bytes_sent(std::size_t stripe) const noexcept {
    return stripes_[stripe]->bytes_sent();
  }

 private:
  static constexpr std::size_t buffer_bytes = 4'096;

  bool parse(const TcpReceiver* wanted) noexcept;
  bool take(const Header& frame) noexcept;
  bool take_message(const Header& frame) noexcept;
  bool take_open(const Header& frame) noexcept;
  void take_buffered_payload() noexcept;
  void land(Landing& landing, std::size_t bytes) noexcept;
  bool go_through(const TcpReceiver* wanted) noexcept;
  bool read_first(bool& more) noexcept;
  bool read_part(std::size_t stripe) noexcept;
  void mute() noexcept;
  void note_flow(std::size_t stripe) noexcept;

  Readiness& readiness_;
  Status status_ = Status::ok;
  bool mute_ = false;
  std::vector<std::unique_ptr<Stripe>> stripes_;
  std::vector<std::uint8_t> blocked_;    // by stripe: the readiness knows that it is
  std::vector<Ring<Landing>> expected_;  // by stripe; that of the first is not used
  std::size_t parts_expected_ = 0;
  Landing landing_;                  // of the first stripe
  std::size_t begin_ = 0, end_ = 0;  // of what is in the buffer
  std::array<std::byte, buffer_bytes> buffer_;

  std::array<TcpSender*, 256> senders_{};
  std::array<TcpReceiver*, 256> receivers_{};
  std::array<ChannelShape, 256> opened_;  // by the peer's receivers; no slots: not yet
  std::array<bool, 256> attached_{};      // the peer's sender is there
};

}  // namespace khoro::tcp
