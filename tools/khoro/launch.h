// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>
#include <signal.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/time.h"
#include "launch_guardian.h"
#include "launch_herald.h"
#include "launch_output.h"
#include "launch_recorder.h"
#include "launch_spawn.h"
#include "launch_status.h"

namespace khoro::tool {

/// What survivors of a failure have to find out, report, and end by themselves.
inline constexpr Duration survivors_patience = std::chrono::seconds(2);

/// What the user of `khoro run` may choose beside the job itself.
struct LaunchOptions {
  bool tags = true;
  Duration timeout = Duration::zero();  // zero: none
};

/// Runs a job from its first process to the last byte of its output, and leaves nothing behind.
class Launch {
 public:
  /// Starts the job's processes. Throws `Error`, and then nothing runs.
  Launch(Job job, LaunchOptions options);
  ~Launch();
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  /// Blocks until the job is over. The exit status of the first process that failed, 128 + n for
  /// one that signal n ended or if signal n ended the job, 124 after the timeout, 1 if only output
  /// was lost, 0 if all went well.
  int run();

 private:
  struct Process {
    pid_t number = 0;
    bool ended = false;
    int status = 0;  // as the shell has it
    bool asked_to_end = false;
    bool was_dying = false;  // when the first failure was seen
    std::string end;         // in words, once it was judged
    bool runs() const { return !ended; }
    bool succeeded() const { return !end.empty() && status == 0; }
  };

  void start_all();
  void wait_for_events();
  void take_signals();
  void interrupt();
  void end_by(int signal);
  struct End {
    std::size_t index;
    int code, status;  // as of waitid()
    bool early;        // it may have been the first to fail
    bool killed() const noexcept;
  };
  void notice_ends();
  void look_for_ends();
  bool may_be_judged();
  void note_end(std::size_t index, int code, int status);
  void pass_on(std::size_t index, const std::string& end);
  /// Adds to `polled` the streams that may be read, which it returns, and then the sinks that hold
  /// something.
  std::vector<TaggedStream*> poll_output(std::vector<pollfd>& polled);
  void write_output();
  /// Has the report printed, once everybody has had a moment to see the failure.
  void report_soon();
  void report(FlightRecorder::Shown shown);
  FlightRecorder::Ends ends() const;
  std::string status() const;
  void check_clock();
  /// Ends the job: SIGTERM at `when`, SIGKILL a second later.
  void end_at(Time when);
  void finish_output();
  bool output_is_left() const;
  void pass_on_last_output(Time until);
  void say_timeout();
  void say(const std::string& line);
  std::string name_of(std::size_t index) const;
  std::set<int> ranks_of(bool (Process::*chosen)() const) const;
  std::size_t count_running() const;
  bool all_ended() const { return count_running() == 0; }

  Job job_;
  Key key_;
  LaunchOptions options_;
  Sink output_;
  Sink apart_;
  /// output_ where standard error is the same file: else lines of the two would mix.
  Sink& error_;
  SessionList sessions_;
  std::optional<Guardian> guardian_;
  std::optional<Herald> herald_;
  FlightRecorder recorder_;
  StatusListener listener_;
  Descriptor port_;
  std::int64_t since_;
  std::vector<Process> processes_;
  std::vector<End> ends_;  // seen and not noted yet
  std::vector<TaggedStream> streams_;
  Descriptor signals_;
  sigset_t signals_before_;
  std::optional<int> verdict_;
  bool output_lost_ = false;
  bool finishing_ = false;  // all processes have ended, and output may be left
  bool output_given_up_ = false;
  bool failure_named_ = false;
  int failed_later_ = 0;
  int interrupts_ = 0;
  int ended_by_ = 0;  // the last signal that asked for the end
  bool timed_out_ = false;
  Time timeout_at_ = never;
  Time judge_at_ = never;  // which of the ends was the first
  Time report_at_ = never;
  bool reported_ = false;
  Time term_at_ = never;
  Time kill_at_ = never;
};

}  // namespace khoro::tool
