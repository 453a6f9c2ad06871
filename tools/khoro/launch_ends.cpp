// SPDX-License-Identifier: Apache-2.0
// How the launcher learns which process of a job failed first, and tells of it.
#include <fmt/format.h>
#include <string.h>
#include <sys/wait.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/process_stat.h"
#include "base/system.h"
#include "launch.h"

namespace khoro::tool {
namespace {

using namespace std::chrono_literals;

/// How long a process takes at most from closing its files to its end.
constexpr Duration dying_patience = 1s;
/// Between a failure and its report: the ranks tell each other within this.
constexpr Duration time_to_see_it = 200ms;

std::string describe(int code, int status) {
  if (code == CLD_EXITED) return fmt::format("exited with status {}", status);
  const char* name = ::sigabbrev_np(status);
  return fmt::format("ended by signal {} (SIG{}, {})", status, name ? name : "?",
                     ::strsignal(status));
}

/// The system has begun to end it: it may have closed its files already, and its end cannot be seen
/// yet.
bool is_dying(pid_t process) {
  const auto stat = stat_of(process);
  return stat && stat->dying;
}

}  // namespace

bool Launch::End::killed() const noexcept { return code != CLD_EXITED; }

void Launch::notice_ends() {
  look_for_ends();
  if (!may_be_judged()) return;
  judge_at_ = never;
  std::stable_partition(ends_.begin(), ends_.end(),
                        [](const End& end) { return end.early && end.killed(); });
  for (const End& end : std::exchange(ends_, {})) note_end(end.index, end.code, end.status);
}

void Launch::look_for_ends() {
  const bool first_was_seen = judge_at_ != never;
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    Process& process = processes_[i];
    if (process.ended) continue;
    siginfo_t info{};
    // Left a zombie until the job is over: its number, which is its session's, stays taken.
    if (::waitid(P_PID, static_cast<id_t>(process.number), &info, WEXITED | WNOHANG | WNOWAIT) !=
            0 ||
        info.si_pid != process.number)
      continue;
    process.ended = true;
    ends_.push_back({i, info.si_code, info.si_status, !first_was_seen || process.was_dying});
  }
}

/// A killed process closes its files before its end can be seen, so one that failed for its sake
/// may be seen first. So when a failure is seen, those that are dying at that moment are waited
/// for.
bool Launch::may_be_judged() {
  const auto failed = [](const End& end) { return end.status != 0; };
  if (verdict_ || std::none_of(ends_.begin(), ends_.end(), failed)) return true;
  if (judge_at_ == never) {
    for (Process& process : processes_)
      process.was_dying = !process.ended && is_dying(process.number);
    look_for_ends();  // its death may have passed between both looks
    judge_at_ = machine().now() + dying_patience;
  }
  const auto awaited = [](const Process& process) { return process.was_dying && !process.ended; };
  return machine().now() >= judge_at_ ||
         std::none_of(processes_.begin(), processes_.end(), awaited);
}

void Launch::note_end(std::size_t index, int code, int status) {
  Process& process = processes_[index];
  process.status = code == CLD_EXITED ? status : 128 + status;
  process.end = describe(code, status);
  if (process.status == 0 || process.asked_to_end) return;
  if (verdict_) {
    if (failure_named_) ++failed_later_;
    return;
  }
  failure_named_ = true;
  verdict_ = process.status;
  const std::string end = fmt::format("{} {}", name_of(index), process.end);
  say(end + (all_ended()
                 ? ""
                 : fmt::format("; the other ranks have {} s to report", survivors_patience / 1s)));
  end_at(machine().now() + survivors_patience);
  report_soon();
  if (!all_ended()) pass_on(index, end);
}

/// To those that wait for it in init, and cannot see the end of a rank that has not come.
void Launch::pass_on(std::size_t index, const std::string& end) {
  try {
    herald_.emplace(key_, Obituary{static_cast<int>(index) * job_.threads, job_.ranks(), end});
  } catch (const Error& error) {
    say(error.what());
  }
}

void Launch::report_soon() {
  if (!reported_ && report_at_ == never) report_at_ = machine().now() + time_to_see_it;
}

void Launch::report(FlightRecorder::Shown shown) {
  report_at_ = never;
  if (reported_) return;
  reported_ = true;
  recorder_.take();
  const std::vector<std::string> lines = recorder_.report(shown, ends());
  for (const std::string& line : lines) say(line);
  if (lines.empty() && shown == FlightRecorder::Shown::all) say("no rank is in a communicator");
}

/// Nothing for a process that runs, or that a process of the job has started.
FlightRecorder::Ends Launch::ends() const {
  return [this](pid_t number) {
    for (const Process& process : processes_)
      if (process.number == number) return process.end;
    return std::string();
  };
}

}  // namespace khoro::tool
