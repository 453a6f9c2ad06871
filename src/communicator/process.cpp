// SPDX-License-Identifier: Apache-2.0
#include "communicator/process.h"

#include <fcntl.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "base/error.h"
#include "base/random.h"
#include "base/sleepers.h"
#include "base/system.h"
#include "rendezvous/meeting.h"

namespace khoro {
namespace {

Descriptor copy_of(int number) {
  Descriptor copy(::fcntl(number, F_DUPFD_CLOEXEC, 0));
  if (!copy) throw_errno("duplicating a descriptor");
  return copy;
}

}  // namespace

Process::Process() : number_(draw_random()) {
  ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
  if (const int error = ::pthread_atfork(nullptr, nullptr, [] {
        forked_ = true;
        Descriptor::close_all();
      })) {
    errno = error;
    throw_errno("pthread_atfork");
  }
}

void Process::fence_all_threads() const noexcept {
  if (::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0) return;
  // Where the system forbids it: stores drain within microseconds, this is a thousand times longer.
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

Process& Process::self() {
  static auto* const process = new Process;
  return *process;
}

Descriptor Process::open_pidfd() {
  // Older C libraries have no wrapper. The descriptor is closed on exec by itself.
  Descriptor pidfd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  if (pidfd) return pidfd;
  if (errno != ENOSYS) throw_errno("pidfd_open of this process");
  return open_lifeline();  // Linux before 5.3, or under valgrind before 3.20
}

Descriptor Process::open_bell() { return copy_of(Sleepers::of_process().bell()); }

Descriptor Process::open_lifeline() {
  const std::lock_guard lock(mutex_);
  if (!lifeline_) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw_errno("a pipe by which others see this process end");
    lifeline_ = Descriptor(ends[0]);
    lifeline_held_ = Descriptor(ends[1]);
  }
  return copy_of(lifeline_.number());
}

std::shared_ptr<Control> Process::control() {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Control> control = control_.lock();
  if (!control) {
    control = std::make_shared<Control>();
    control_ = control;
  }
  return control;
}

void Process::host(const UniqueId& id, Time deadline) {
  sweep(id.communicator);
  std::list<Hosted> hosted(1);
  Hosted& mine = hosted.front();
  mine.communicator = id.communicator;
  mine.control = control();
  // Shared by the callback and its copies.
  const std::shared_ptr<Meeting> meeting = std::make_unique<Meeting>(id, deadline);
  const std::lock_guard lock(mutex_);  // the callback finds it in the list
  mine.watch = mine.control->while_readable(meeting->descriptor(),
                                            [this, meeting, communicator = id.communicator] {
                                              meeting->advance();
                                              if (meeting->over()) close(communicator);
                                            });
  mine.meeting = meeting;
  hosted_.splice(hosted_.end(), hosted);
}

void Process::call_off(const UniqueId& id, const Error& reason) noexcept {
  const std::lock_guard lock(mutex_);
  for (Hosted& each : hosted_) {
    if (each.communicator != id.communicator || each.over || each.call_off) continue;
    try {
      each.call_off = each.control->at(
          machine().now(), [meeting = each.meeting, reason] { meeting->call_off(reason); });
    } catch (const std::exception&) {
      // Then it ends by its deadline.
    }
  }
}

/// On the control thread, which cannot end itself: gives up the meeting and all that it holds.
void Process::close(std::uint64_t communicator) noexcept {
  std::shared_ptr<Meeting> meeting;
  Control::Watch dropped, call_off;  // without the lock
  const std::lock_guard lock(mutex_);
  for (Hosted& each : hosted_) {
    if (each.communicator != communicator || each.over) continue;
    each.over = true;
    dropped = std::move(each.watch);
    call_off = std::move(each.call_off);
    meeting = std::move(each.meeting);
  }
}

/// Forgets the meetings that are over. False while that of `communicator` is not.
bool Process::sweep(std::uint64_t communicator) noexcept {
  std::list<Hosted> over;  // ended without the lock: the control thread may have to be joined
  const std::lock_guard lock(mutex_);
  bool found = false;
  for (auto at = hosted_.begin(); at != hosted_.end();) {
    const auto each = at++;
    if (each->over)
      over.splice(over.end(), hosted_, each);
    else
      found |= each->communicator == communicator;
  }
  return !found;
}

void Process::end_hosting(const UniqueId& id) noexcept {
  for (int i = 0; i < 100 && !sweep(id.communicator); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void Process::stop_hosting(const UniqueId& id) noexcept {
  std::list<Hosted> stopped;  // ended without the lock, as in sweep()
  const std::lock_guard lock(mutex_);
  for (auto at = hosted_.begin(); at != hosted_.end();) {
    const auto each = at++;
    if (each->communicator == id.communicator) stopped.splice(stopped.end(), hosted_, each);
  }
}

}  // namespace khoro
