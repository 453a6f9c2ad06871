// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "communicator/flight_report.h"
#include "communicator/recorder.h"

namespace khoro::tool {

/// Keeps what the ranks of a job wrote of their last operations: each rank shows its memory when it
/// joins a communicator, and the launcher maps what it needs of it, so that it can be read when the
/// rank is stopped or dead. Reads only.
class FlightRecorder {
 public:
  /// Opens the socket on which ranks tell. Throws `Error`.
  explicit FlightRecorder(const Key& key);

  /// The descriptor that ranks inherit.
  int for_ranks() const noexcept { return theirs_.number(); }
  /// Readable when take() has something to do.
  int descriptor() const noexcept { return ours_.number(); }
  /// Takes what ranks have told, up to a limit, so that it returns soon.
  void take();

  /// Why a communicator failed that failed first.
  struct Failure {
    std::uint64_t communicator = 0;
    int rank = 0;  // who told
    Cause cause;
    std::string words;
  };
  const std::optional<Failure>& failure() const noexcept { return failure_; }

  /// The state of one communicator.
  struct Account {
    int number = 0;  // of the job's communicators, as they appeared, from 1
    int ranks = 0;   // of which it may be that not all have come
    std::optional<Failure> failure;
    std::vector<RankAccount> members;
  };
  /// How a process ended, if the launcher saw it.
  using Ends = std::function<std::string(pid_t)>;
  /// Of all communicators that some rank has not left, in the order in which they appeared.
  std::vector<Account> accounts(const Ends& ends) const;

  /// Which communicators a report shows: those that failed or lost a rank, or all.
  enum class Shown : std::uint8_t { failed, all };
  /// The report on the job, made once; empty if there is nothing to show.
  std::vector<std::string> report(Shown shown, const Ends& ends);

 private:
  class Page;
  struct Member {
    pid_t pid = 0;
    std::uint64_t started = 0;         // as of ProcessStat; 0: unknown
    std::shared_ptr<const Page> page;  // shared by the copies of a Member alone
  };
  struct Recorded {
    int number = 0;
    int ranks = 0;
    std::map<int, Member> members;
  };

  void take(const RecorderPacket& packet, std::vector<Descriptor>& descriptors);
  void join(const RecorderPacket& packet, const Descriptor& memory);
  void leave(const RecorderPacket& packet);
  void sweep();
  using States = std::map<pid_t, ProcessState>;
  std::vector<Sighting> look_at(const Recorded& recorded, const Ends& ends, States& states) const;

  Descriptor ours_;
  Descriptor theirs_;
  std::map<std::uint64_t, Recorded> communicators_;
  std::size_t pages_ = 0;
  int appeared_ = 0;
  std::optional<Failure> failure_;
  bool reported_ = false;
};

}  // namespace khoro::tool
