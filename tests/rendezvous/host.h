// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <thread>

#include "base/system.h"
#include "rendezvous/meeting.h"
#include "rendezvous/membership.h"

namespace khoro {

/// Serves one meeting on a thread of its own until it is over.
class Host {
 public:
  explicit Host(const UniqueId& id, Time deadline = never)
      : meeting_(id, deadline), thread_([this] { serve(); }) {}
  ~Host() {
    stop_ = true;
    thread_.join();
  }

  /// Waits until so many ranks are there; false if they do not come.
  bool sees(std::size_t ranks) const {
    Time until = machine().now() + std::chrono::seconds(20);
    while (present_ != ranks && machine().now() < until) ::poll(nullptr, 0, 1);
    return present_ == ranks;
  }
  /// True if the meeting ended within `seconds`.
  bool ends_within(double seconds) const {
    Time until = machine().now() + std::chrono::milliseconds(static_cast<int>(seconds * 1000));
    while (!over_ && machine().now() < until) ::poll(nullptr, 0, 1);
    return over_;
  }

 private:
  void serve() {
    while (!stop_ && !meeting_.over()) {
      pollfd one{meeting_.descriptor(), POLLIN, 0};
      ::poll(&one, 1, 50);
      meeting_.advance();
      present_ = meeting_.present();
    }
    over_ = meeting_.over();
  }

  Meeting meeting_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> over_{false};
  std::atomic<std::size_t> present_{0};
  std::thread thread_;
};

inline Time in_seconds(double seconds) {
  return machine().now() + std::chrono::milliseconds(static_cast<int>(seconds * 1000));
}

inline Descriptor pidfd_of_self() {
  return Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
}

/// A guest whose memory and doorbell hold its rank.
inline Guest guest(int rank, int ranks, std::string facts = "") {
  Guest guest;
  guest.ranks = ranks;
  guest.facts = std::move(facts);
  guest.introduction.rank = rank;
  guest.introduction.process = static_cast<std::uint64_t>(::getpid());
  guest.introduction.memory = Descriptor(::memfd_create("rank", MFD_CLOEXEC));
  [[maybe_unused]] auto size = ::pwrite(guest.introduction.memory.number(), &rank, sizeof rank, 0);
  guest.introduction.doorbell = Descriptor(::eventfd(static_cast<unsigned>(rank) + 1, EFD_CLOEXEC));
  guest.introduction.pidfd = pidfd_of_self();
  return guest;
}

/// The rank that a member's memory holds.
inline int rank_in(const Introduction& member) {
  int rank = -1;
  [[maybe_unused]] auto size = ::pread(member.memory.number(), &rank, sizeof rank, 0);
  return rank;
}

/// What join() throws for the guest, or nothing.
struct Outcome {
  Code code = Code::success;
  std::string text;
};
template <class Function>
Outcome outcome_of(Function function) {
  try {
    function();
    return {};
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
}

/// Runs `function(rank)` for every rank on a thread of its own.
template <class Function>
auto on_all_ranks(int ranks, Function function) {
  std::vector<std::future<decltype(function(0))>> futures;
  for (int rank = 0; rank < ranks; ++rank)
    futures.push_back(std::async(std::launch::async, function, rank));
  std::vector<decltype(function(0))> results;
  for (auto& future : futures) results.push_back(future.get());
  return results;
}

inline std::vector<Outcome> join_all(const UniqueId& id, int ranks, double seconds = 20) {
  return on_all_ranks(ranks, [&](int rank) {
    return outcome_of([&] { join(id, guest(rank, ranks), in_seconds(seconds)); });
  });
}

}  // namespace khoro
