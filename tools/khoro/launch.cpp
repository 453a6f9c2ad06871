// SPDX-License-Identifier: Apache-2.0
#include "launch.h"

#include <fmt/format.h>
#include <poll.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "base/ranks.h"
#include "base/system.h"
#include "launch_sessions.h"
#include "rendezvous/unique_id.h"

namespace khoro::tool {
namespace {

using namespace std::chrono_literals;

constexpr Duration between_term_and_kill = 1s;
/// What ranks that were interrupted have to end by themselves.
constexpr Duration patience_after_interrupt = 2s;
constexpr int timeout_status = 124;

Key draw_key() {
  Key key;
  draw_random(key);
  return key;
}

bool same_file(int one, int other) {
  struct stat first {
  }, second{};
  return ::fstat(one, &first) == 0 && ::fstat(other, &second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

}  // namespace

Launch::Launch(Job job, LaunchOptions options)
    : job_(std::move(job)),
      key_(draw_key()),
      options_(options),
      output_(STDOUT_FILENO),
      apart_(STDERR_FILENO),
      error_(same_file(STDOUT_FILENO, STDERR_FILENO) ? output_ : apart_),
      sessions_(static_cast<std::size_t>(job_.processes)),
      recorder_(key_),
      port_(reserve_port()),
      since_(::time(nullptr)) {
  sigset_t handled;
  ::sigemptyset(&handled);
  for (int number : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) ::sigaddset(&handled, number);
  ::sigprocmask(SIG_BLOCK, &handled, &signals_before_);
  // Writing for a reader that has gone, or from the background, is an error and not an end.
  for (int number : {SIGPIPE, SIGTTIN, SIGTTOU}) ::signal(number, SIG_IGN);
  signals_ = Descriptor(::signalfd(-1, &handled, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!signals_) throw_errno("cannot receive signals by a descriptor");
  Descriptor key(make_job_key_descriptor(key_));
  job_.key = key.number();
  job_.recorder = recorder_.for_ranks();
  job_.port = port_of(port_);
  guardian_.emplace(sessions_);
  try {
    start_all();
  } catch (...) {
    kill_sessions(sessions_.all());
    throw;
  }
  if (options_.timeout > Duration::zero()) timeout_at_ = machine().now() + options_.timeout;
}

Launch::~Launch() {
  kill_sessions(sessions_.all());
  for (Process& process : processes_) ::waitpid(process.number, nullptr, 0);
  wipe(key_);
  ::sigprocmask(SIG_SETMASK, &signals_before_, nullptr);
}

void Launch::start_all() {
  for (int index = 0; index < job_.processes; ++index) {
    Spawned spawned = spawn(job_, index, sessions_);
    processes_.emplace_back().number = spawned.process;
    std::string tag = options_.tags ? fmt::format("[{}] ", index * job_.threads) : "";
    if (!spawned.output) continue;  // to files
    streams_.emplace_back(std::move(spawned.output), tag, output_);
    streams_.emplace_back(std::move(spawned.error), tag, error_);
  }
}

int Launch::run() {
  while (!all_ended()) {
    wait_for_events();
    notice_ends();
    check_clock();
  }
  recorder_.take();
  if (recorder_.failure()) report_soon();
  if (report_at_ != never) report(FlightRecorder::Shown::failed);
  int left = kill_sessions(sessions_.all());
  if (left > 0)
    say(fmt::format("{} process{} that the job left running {} killed", left, left == 1 ? "" : "es",
                    left == 1 ? "was" : "were"));
  if (failed_later_ > 0)
    say(fmt::format("{} other process{} failed after that", failed_later_,
                    failed_later_ == 1 ? "" : "es"));
  finish_output();
  return verdict_.value_or(output_lost_ ? 1 : 0);
}

void Launch::wait_for_events() {
  const Time now = machine().now();
  std::vector<pollfd> polled = {{signals_.number(), POLLIN, 0},
                                // Readable for ever once it has died, which is news only once.
                                {verdict_ ? -1 : guardian_->descriptor(), POLLIN, 0},
                                {recorder_.descriptor(), POLLIN, 0},
                                {listener_.descriptor(now), POLLIN, 0}};
  const std::size_t first_stream = polled.size();
  const std::vector<TaggedStream*> readable = poll_output(polled);
  const Time next = std::min(
      {timeout_at_, report_at_, term_at_, kill_at_, judge_at_, listener_.rests_until(now)});
  ::poll(polled.data(), polled.size(), milliseconds_until(next));
  if (polled[0].revents) take_signals();
  if (polled[1].revents && !verdict_) {
    say("the guardian of the job was killed: the job ends");
    verdict_ = 1;
    end_at(machine().now());
  }
  if (polled[2].revents) recorder_.take();
  if (recorder_.failure()) report_soon();
  if (polled[3].revents) listener_.answer(machine().now(), [&] { return status(); });
  for (std::size_t i = 0; i < readable.size(); ++i)
    if (polled[first_stream + i].revents) readable[i]->read_some();
  write_output();
}

std::vector<TaggedStream*> Launch::poll_output(std::vector<pollfd>& polled) {
  std::vector<TaggedStream*> readable;
  for (TaggedStream& stream : streams_) {
    if (stream.descriptor() < 0 || stream.sink().full()) continue;
    polled.push_back({stream.descriptor(), POLLIN, 0});
    readable.push_back(&stream);
  }
  for (Sink* sink : {&output_, &error_})
    if (!sink->empty()) polled.push_back({sink->descriptor(), POLLOUT, 0});
  return readable;
}

void Launch::write_output() {
  output_.write_some();
  if (const int cause = output_.take_fault()) {
    say(fmt::format("not all output could be written: {}", words_of_errno(cause)));
    output_lost_ = true;
  }
  error_.write_some();
  if (error_.take_fault()) output_lost_ = true;
}

void Launch::take_signals() {
  signalfd_siginfo info;
  while (::read(signals_.number(), &info, sizeof info) == sizeof info) {
    const int number = static_cast<int>(info.ssi_signo);
    if (number == SIGCHLD) continue;
    const bool is_new = std::exchange(ended_by_, number) != number;
    if (finishing_)
      output_given_up_ = true;
    else if (number == SIGINT)
      interrupt();
    else if (is_new)
      end_by(number);
  }
}

void Launch::end_by(int signal) {
  say(fmt::format("ended by signal {} (SIG{}), and all ranks with it", signal,
                  ::sigabbrev_np(signal)));
  if (!verdict_) verdict_ = 128 + signal;
  reported_ = true;  // what fails now was made to
  end_at(machine().now());
}

void Launch::interrupt() {
  reported_ = true;
  if (++interrupts_ == 1) {
    say(fmt::format(
        "interrupted: passed on to all ranks, which have {} s to end; once more kills them",
        patience_after_interrupt / 1s));
    end_at(machine().now() + patience_after_interrupt);
    // What Ctrl-C does to a group in the foreground.
    for (Process& process : processes_)
      if (!process.ended) ::kill(-process.number, SIGINT);
    return;
  }
  if (!verdict_) verdict_ = 128 + SIGINT;
  for (Process& process : processes_) process.asked_to_end = true;
  kill_sessions(sessions_.all());
}

std::string Launch::status() const {
  return describe_job({&job_, since_, static_cast<int>(count_running())},
                      recorder_.accounts(ends()));
}

void Launch::end_at(Time when) { term_at_ = std::min(term_at_, when); }

void Launch::check_clock() {
  Time now = machine().now();
  if (now >= timeout_at_) {
    timeout_at_ = never;
    if (!all_ended() && !verdict_) {
      say_timeout();
      verdict_ = timeout_status;
      timed_out_ = true;
      report(FlightRecorder::Shown::all);
      end_at(now);
    }
  }
  if (now >= report_at_) report(FlightRecorder::Shown::failed);
  if (now >= term_at_) {
    term_at_ = never;
    if (report_at_ != never) report(FlightRecorder::Shown::failed);
    reported_ = true;
    if (!verdict_) verdict_ = 128 + SIGINT;  // all other reasons to end it have said theirs
    kill_at_ = std::min(kill_at_, now + between_term_and_kill);
    for (Process& process : processes_) process.asked_to_end = true;
    signal_sessions(sessions_.all(), SIGTERM);
  }
  if (now >= kill_at_) {
    kill_at_ = never;
    const std::set<int> ranks = ranks_of(&Process::runs);
    if (!ranks.empty())
      say(fmt::format("killed {}, which did not end by {}", ranks_in_words(ranks),
                      ranks.size() == 1 ? "itself" : "themselves"));
    kill_sessions(sessions_.all());
  }
}

void Launch::say_timeout() {
  const std::set<int> done = ranks_of(&Process::succeeded);
  say(fmt::format("timeout: {} still ran after {} s{}", ranks_in_words(ranks_of(&Process::runs)),
                  std::chrono::duration<double>(options_.timeout).count(),
                  done.empty() ? "" : "; " + ranks_in_words(done) + " had ended with status 0"));
}

void Launch::say(const std::string& line) { error_.add("khoro run: " + line + "\n"); }

std::string Launch::name_of(std::size_t index) const {
  int first = static_cast<int>(index) * job_.threads;
  std::string ranks = job_.threads == 1
                          ? fmt::format("rank {}", first)
                          : fmt::format("ranks {}-{}", first, first + job_.threads - 1);
  return fmt::format("{} (process {})", ranks, processes_[index].number);
}

std::set<int> Launch::ranks_of(bool (Process::*chosen)() const) const {
  std::set<int> ranks;
  for (std::size_t i = 0; i < processes_.size(); ++i)
    for (int thread = 0; thread < job_.threads && (processes_[i].*chosen)(); ++thread)
      ranks.insert(static_cast<int>(i) * job_.threads + thread);
  return ranks;
}

std::size_t Launch::count_running() const {
  return static_cast<std::size_t>(
      std::count_if(processes_.begin(), processes_.end(), std::mem_fn(&Process::runs)));
}

}  // namespace khoro::tool
