// SPDX-License-Identifier: Apache-2.0

// How long two processes need to exchange small messages: what the machine can do with two bare
// cache lines, and what a channel makes of it. Each round, both write and then wait for the other's
// message, as an allreduce of two ranks does. The first figure is the machine's own limit to which
// the latency of collectives is compared.
//
// usage: channel_latency [ROUNDS [REPEATS]]

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/shared_memory.h"
#include "base/system.h"
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

/// One rank's side of every way to exchange.
class Player {
 public:
  Player(int rank, const std::vector<Rank>& ranks)
      : mine_(ranks[static_cast<std::size_t>(rank)].line()),
        other_(ranks[static_cast<std::size_t>(1 - rank)].line()) {
    TransportSetup setup{
        .rank = rank, .endpoints = {}, .area_offset = page, .area_bytes = area_bytes};
    for (int each = 0; each < 2; ++each) {
      const Rank& of = ranks[static_cast<std::size_t>(each)];
      setup.endpoints.push_back({.rank = each,
                                 .process = static_cast<std::uint64_t>(each) + 1,
                                 .memory = of.memory.number(),
                                 .doorbell = {of.word(), of.event.number()}});
    }
    transport_ = transports()[0].make(setup);
    sender_ = transport_->open_sender({1 - rank, 0}, {});
    receiver_ = transport_->open_receiver({1 - rank, 0}, {});
  }

  void lines(int rounds) {
    for (int i = 0; i < rounds; ++i) {
      mine_.word.store(++sent_, std::memory_order_release);
      while (other_.word.load(std::memory_order_acquire) < sent_) {
      }
    }
  }

  void messages(int rounds, std::size_t bytes) {
    for (int i = 0; i < rounds; ++i) {
      std::byte* room = nullptr;
      while ((room = sender_->try_acquire(bytes)) == nullptr) {
      }
      std::memcpy(room, payload_, bytes);
      sender_->publish({digest, bytes, Form::dtype});
      const Message* message = nullptr;
      while ((message = receiver_->try_observe(digest).message) == nullptr) {
      }
      std::memcpy(payload_, message->data, bytes);
      receiver_->release();
    }
  }

 private:
  Line& mine_;
  Line& other_;
  std::uint64_t sent_ = 0;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Sender> sender_;
  std::unique_ptr<Receiver> receiver_;
  std::byte payload_[4096] = {};
};

struct Way {
  std::string name;
  std::function<void(Player&, int)> play;
  std::vector<double> times = {};  // ns per round
};

std::vector<Way> ways() {
  std::vector<Way> ways = {{"two bare cache lines", &Player::lines}};
  for (const std::size_t bytes : {8, 40, 64, 1024, 4096}) {
    ways.push_back({fmt::format("messages of {} bytes", bytes),
                    [bytes](Player& player, int rounds) { player.messages(rounds, bytes); }});
  }
  return ways;
}

void play_all(Player& player, std::vector<Way>& ways, int rounds, int repeats) {
  // Interleaved, so that whatever else the machine does meets all ways alike.
  for (int repeat = 0; repeat < repeats; ++repeat) {
    for (Way& way : ways) {
      way.play(player, rounds / 10 + 1);
      const Time start = machine().now();
      way.play(player, rounds);
      way.times.push_back(static_cast<double>((machine().now() - start).count()) / rounds);
    }
  }
}

double quantile(std::vector<double> times, double part) {
  std::sort(times.begin(), times.end());
  return times[static_cast<std::size_t>(part * static_cast<double>(times.size() - 1))];
}

void print(const std::vector<Way>& ways) {
  fmt::print("# {:<26} {:>9} {:>9} {:>7}\n", "exchange, both ways", "min ns", "median ns", "ratio");
  const double bare = quantile(ways[0].times, 0.5);
  for (const Way& way : ways) {
    const double median = quantile(way.times, 0.5);
    fmt::print("  {:<26} {:>9.1f} {:>9.1f} {:>7.2f}\n", way.name, quantile(way.times, 0), median,
               median / bare);
  }
}

}  // namespace

int main(int argc, char** argv) try {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 5'000;
  const int repeats = argc > 2 ? std::max(1, std::atoi(argv[2])) : 51;
  const std::vector<Rank> ranks(2);
  std::vector<Way> all = ways();
  const pid_t child = ::fork();
  if (child < 0) throw_errno("channel_latency: cannot fork");
  Player player(child == 0 ? 1 : 0, ranks);
  play_all(player, all, rounds, repeats);
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  print(all);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
