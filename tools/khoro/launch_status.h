// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "base/time.h"
#include "launch_recorder.h"
#include "launch_spawn.h"

namespace khoro::tool {

/// How launchers and `khoro status` find each other: abstract sockets of this name, then the user
/// and the launcher's process in decimal and a random word, all joined by hyphens.
inline constexpr const char* job_socket_prefix = "khoro-job-";

/// The one packet with which a launcher answers whoever connects; with it comes a memfd that holds
/// `bytes` of JSON.
struct StatusReply {
  static constexpr std::uint32_t current_version = 1;
  std::uint32_t version = current_version;  // first, for every later version too
  std::uint32_t reserved = 0;
  std::uint64_t bytes = 0;
};

/// Where the user, or root, may ask after a running job. Nothing is read from who asks and nothing
/// is waited for, so none can hold up the job.
class StatusListener {
 public:
  /// Without a socket there is no status, and the job runs all the same.
  StatusListener() noexcept;

  /// Readable when somebody asks; -1 while it rests.
  int descriptor(Time now) const noexcept { return now < rests_until_ ? -1 : socket_.number(); }
  /// It rests while no descriptors are left for who asks; `never` while it does not.
  Time rests_until(Time now) const noexcept { return now < rests_until_ ? rests_until_ : never; }
  /// Answers one of those that ask.
  void answer(Time now, const std::function<std::string()>& status) noexcept;

 private:
  Descriptor socket_;
  Time rests_until_{};
};

/// What `khoro status` is told of a job beside its communicators.
struct JobFacts {
  const Job* job = nullptr;  // borrowed
  std::int64_t since = 0;    // in seconds of the calendar
  int running = 0;           // processes
};

/// The JSON object of one job.
std::string describe_job(const JobFacts& facts,
                         const std::vector<FlightRecorder::Account>& communicators);

}  // namespace khoro::tool
