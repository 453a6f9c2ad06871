// SPDX-License-Identifier: Apache-2.0
#include "transport/tcp/tcp.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/system.h"
#include "transport/claims.h"
#include "transport/tcp/connection.h"
#include "transport/tcp/ends.h"
#include "transport/tcp/readiness.h"

namespace khoro {
namespace tcp {
namespace {

class Tcp final : public Transport {
 public:
  explicit Tcp(const TransportSetup& setup) : rank_(setup.rank) {
    for (const Endpoint& peer : setup.endpoints) {
      if (peer.sockets.size() > most_stripes)
        throw Error(Code::internal_error,
                    fmt::format("tcp: {} stripes to rank {}, {} at the most", peer.sockets.size(),
                                peer.rank, most_stripes));
      auto& connection = connections_.emplace_back();
      if (!peer.sockets.empty())
        connection = std::make_unique<Connection>(readiness_, peer.sockets);
    }
  }

  std::string_view name() const noexcept override { return "tcp"; }

  std::optional<Route> reach(const Endpoint& peer) const override {
    if (peer.sockets.empty()) return std::nullopt;
    return Route{.bytes_per_second = 2e9, .latency_seconds = 10e-6};
  }

  std::unique_ptr<Sender> open_sender(const ChannelName& name, ChannelShape shape) override {
    Connection& connection = check(name, shape);
    senders_.claim(name);
    auto sender = std::make_unique<TcpSender>(connection, name.index, shape);
    const std::lock_guard lock(mutex_);
    slots_.push_back(&sender->slots());
    return sender;
  }

  std::unique_ptr<Receiver> open_receiver(const ChannelName& name, ChannelShape shape) override {
    Connection& connection = check(name, shape);
    receivers_.claim(name);
    auto receiver = std::make_unique<TcpReceiver>(connection, name.index, shape);
    const std::lock_guard lock(mutex_);
    slots_.push_back(&receiver->slots());
    return receiver;
  }

  int descriptor() const noexcept override { return readiness_.descriptor(); }

  void drain(System& system, Duration most) noexcept override {
    const Time until = later(system.now(), most);
    const auto is_through = [](const std::unique_ptr<Connection>& connection) {
      if (!connection) return true;
      connection->flush();
      connection->take_in(nullptr);
      return connection->drained();
    };
    for (const auto& connection : connections_)
      while (!is_through(connection) && system.now() < until) system.yield();
  }

  std::uint64_t bytes_held() const noexcept override {
    const std::lock_guard lock(mutex_);
    std::uint64_t bytes = 0;
    for (const auto& connection : connections_) bytes += connection ? sizeof(Connection) : 0;
    for (const Slots* slots : slots_) bytes += slots->bytes_used();
    return bytes;
  }

  std::uint64_t bytes_sent() const noexcept override {
    std::uint64_t bytes = 0;
    for (const std::uint64_t of_stripe : bytes_by_stripe()) bytes += of_stripe;
    return bytes;
  }

  std::vector<std::uint64_t> bytes_by_stripe() const override {
    std::vector<std::uint64_t> bytes;
    for (const auto& connection : connections_) {
      if (!connection) continue;
      bytes.resize(std::max(bytes.size(), connection->stripes()));
      for (std::size_t i = 0; i < connection->stripes(); ++i) bytes[i] += connection->bytes_sent(i);
    }
    return bytes;
  }

 private:
  Connection& check(const ChannelName& name, ChannelShape shape) const {
    if (name.peer < 0 || static_cast<std::size_t>(name.peer) >= connections_.size() ||
        !connections_[static_cast<std::size_t>(name.peer)])
      throw Error(Code::internal_error,
                  fmt::format("tcp: rank {} has no sockets to rank {}", rank_, name.peer));
    if (shape.slots < 1 || shape.slots > max_slots || shape.slot_bytes > max_slot_bytes)
      throw Error(Code::invalid_argument,
                  fmt::format("tcp: a channel cannot have {} slots of {} bytes; legal are 1..{} of "
                              "0..{}",
                              shape.slots, shape.slot_bytes, max_slots, max_slot_bytes));
    return *connections_[static_cast<std::size_t>(name.peer)];
  }

  int rank_;
  Readiness readiness_;
  std::vector<std::unique_ptr<Connection>> connections_;  // by rank; null: none
  mutable std::mutex mutex_;                              // of the slots that statistics look at
  std::vector<const Slots*> slots_;
  Claims senders_{"tcp", "sender"};
  Claims receivers_{"tcp", "receiver"};
};

}  // namespace
}  // namespace tcp

std::unique_ptr<Transport> make_tcp(const TransportSetup& setup) {
  return std::make_unique<tcp::Tcp>(setup);
}

}  // namespace khoro
