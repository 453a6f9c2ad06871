// SPDX-License-Identifier: Apache-2.0

// How long two processes need to exchange messages: what the machine can do with two bare cache
// lines or one bare socket, and what a channel of each transport makes of it. Each round, both
// write and then wait for the other's message, as an allreduce of two ranks does. The first figure
// of each transport is the machine's own limit to which the latency of collectives is compared.
//
// usage: channel_latency [ROUNDS [REPEATS [STRIPES]]]

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/shared_memory.h"
#include "base/system.h"
#include "rendezvous/listener.h"
#include "transport/registry.h"

namespace {

using namespace khoro;

constexpr std::uint32_t digest = 7;
constexpr std::uint64_t page = 4096;
constexpr std::uint64_t area_bytes = 8 << 20;

struct alignas(128) Line {
  std::atomic<std::uint64_t> word;
};

/// Memory of one rank: its doorbell and a bare line on the first page, then the channel area.
struct Rank {
  Descriptor memory = make_shared_memory("channel_latency", page + area_bytes);
  Mapping mapping = Mapping::open(memory.number(), page + area_bytes, "own memory");
  Descriptor event = make_doorbell_descriptor();

  DoorbellWord& word() const { return *reinterpret_cast<DoorbellWord*>(mapping.bytes().data()); }
  Line& line() const { return *reinterpret_cast<Line*>(mapping.bytes().data() + 1024); }
};

/// Connections between the two ranks: the first is bare, the others are stripes.
using Sockets = std::vector<std::array<Descriptor, 2>>;

Sockets connect(int stripes) {
  const Listener listener = listen_for_stripes("", "auto");
  Sockets sockets;
  for (int i = 0; i <= stripes; ++i) sockets.push_back(connect_within(listener));
  return sockets;
}

/// A channel each way.
struct Channels {
  std::unique_ptr<Transport> transport;
  std::unique_ptr<Sender> sender;
  std::unique_ptr<Receiver> receiver;
};

/// One rank's side of every way to exchange.
class Player {
 public:
  Player(int rank, const std::vector<Rank>& ranks, const Sockets& sockets)
      : mine_(ranks[static_cast<std::size_t>(rank)].line()),
        other_(ranks[static_cast<std::size_t>(1 - rank)].line()),
        socket_(sockets[0][static_cast<std::size_t>(rank)].number()) {
    TransportSetup setup{
        .rank = rank, .endpoints = {}, .area_offset = page, .area_bytes = area_bytes};
    for (int each = 0; each < 2; ++each) {
      const Rank& of = ranks[static_cast<std::size_t>(each)];
      setup.endpoints.push_back({.rank = each,
                                 .process = static_cast<std::uint64_t>(each) + 1,
                                 .memory = of.memory.number(),
                                 .doorbell = {of.word(), of.event.number()},
                                 .sockets = {}});
      for (std::size_t i = 1; each != rank && i < sockets.size(); ++i)
        setup.endpoints.back().sockets.push_back(
            sockets[i][static_cast<std::size_t>(rank)].number());
    }
    for (const TransportRow& row : transports()) {
      Channels& made = channels_.emplace_back();
      made.transport = row.make(setup);
      made.sender = made.transport->open_sender({1 - rank, 0}, {});
      made.receiver = made.transport->open_receiver({1 - rank, 0}, {});
    }
  }

  void lines(int rounds) {
    for (int i = 0; i < rounds; ++i) {
      mine_.word.store(++sent_, std::memory_order_release);
      while (other_.word.load(std::memory_order_acquire) < sent_) {
      }
    }
  }

  void bare_socket(int rounds, std::size_t bytes) {
    for (int i = 0; i < rounds; ++i) {
      std::size_t sent = 0, received = 0;
      while (sent < bytes || received < bytes) {
        if (sent < bytes) pass(sent, ::send(socket_, payload_ + sent, bytes - sent, MSG_DONTWAIT));
        if (received < bytes)
          pass(received, ::recv(socket_, heard_ + received, bytes - received, MSG_DONTWAIT));
      }
    }
  }

  /// Of the transport in that row of the registry.
  void messages(std::size_t row, int rounds, std::size_t bytes) {
    Channels& channels = channels_[row];
    for (int i = 0; i < rounds; ++i) {
      std::byte* room = nullptr;
      while ((room = channels.sender->try_acquire(bytes)) == nullptr) {
      }
      std::memcpy(room, payload_, bytes);
      channels.sender->publish({digest, bytes, Form::dtype});
      const Message* message = nullptr;
      while ((message = channels.receiver->try_observe(digest).message) == nullptr) {
      }
      std::memcpy(heard_, message->data, bytes);
      channels.receiver->release();
    }
  }

 private:
  static void pass(std::size_t& passed, ssize_t now) {
    if (now == 0) throw Error(Code::system_error, "channel_latency: the other process has ended");
    if (now > 0) passed += static_cast<std::size_t>(now);
  }

  Line& mine_;
  Line& other_;
  int socket_;
  std::uint64_t sent_ = 0;
  std::vector<Channels> channels_;  // by row of the registry
  std::byte payload_[65'536] = {};
  std::byte heard_[65'536] = {};
};

struct Way {
  std::string name;
  std::function<void(Player&, int)> play;
  std::size_t bare = 0;            // the way that this one is compared to
  int slowness = 1;                // plays so many times fewer rounds
  std::vector<double> times = {};  // ns per round
};

std::vector<Way> ways() {
  std::vector<Way> ways = {{"two bare cache lines", &Player::lines}};
  for (std::size_t row = 0; row < transports().size(); ++row) {
    const bool sockets = transports()[row].uses_sockets;
    for (const std::size_t bytes : {8, 40, 64, 1024, 4096, 65'536}) {
      if (sockets)
        ways.push_back({fmt::format("bare socket, {} bytes", bytes),
                        [bytes](Player& player, int rounds) { player.bare_socket(rounds, bytes); },
                        ways.size(), 20});
      ways.push_back(
          {fmt::format("{}, messages of {} bytes", transports()[row].name, bytes),
           [row, bytes](Player& player, int rounds) { player.messages(row, rounds, bytes); },
           sockets ? ways.size() - 1 : 0, sockets ? 20 : 1});
    }
  }
  return ways;
}

void play_all(Player& player, std::vector<Way>& ways, int rounds, int repeats) {
  // Interleaved, so that whatever else the machine does meets all ways alike.
  for (int repeat = 0; repeat < repeats; ++repeat) {
    for (Way& way : ways) {
      const int played = rounds / way.slowness + 1;
      way.play(player, played / 10 + 1);
      const Time start = machine().now();
      way.play(player, played);
      way.times.push_back(static_cast<double>((machine().now() - start).count()) / played);
    }
  }
}

double quantile(std::vector<double> times, double part) {
  std::sort(times.begin(), times.end());
  return times[static_cast<std::size_t>(part * static_cast<double>(times.size() - 1))];
}

void print(const std::vector<Way>& ways) {
  fmt::print("# {:<28} {:>9} {:>9} {:>7}\n", "exchange, both ways", "min ns", "median ns", "ratio");
  for (const Way& way : ways) {
    const double median = quantile(way.times, 0.5);
    fmt::print("  {:<28} {:>9.1f} {:>9.1f} {:>7.2f}\n", way.name, quantile(way.times, 0), median,
               median / quantile(ways[way.bare].times, 0.5));
  }
}

}  // namespace

int main(int argc, char** argv) try {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 5'000;
  const int repeats = argc > 2 ? std::max(1, std::atoi(argv[2])) : 51;
  const int stripes = argc > 3 ? std::clamp(std::atoi(argv[3]), 1, 16) : 2;
  const std::vector<Rank> ranks(2);
  const Sockets sockets = connect(stripes);
  std::vector<Way> all = ways();
  const pid_t child = ::fork();
  if (child < 0) throw_errno("channel_latency: cannot fork");
  Player player(child == 0 ? 1 : 0, ranks, sockets);
  play_all(player, all, rounds, repeats);
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  print(all);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
