// SPDX-License-Identifier: Apache-2.0
#include "launch_guardian.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "launch_sessions.h"

namespace khoro::tool {
namespace {

Descriptor open_pidfd(pid_t process) {
  return Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
}

/// Holds nothing of the launcher's but its process descriptor: no pipe stays open for its sake.
void close_all_but(int kept) {
  int null = ::open("/dev/null", O_RDWR);
  for (int standard = 0; standard < 3; ++standard) ::dup2(null, standard);
  ::dup2(kept, 3);
  if (::syscall(SYS_close_range, 4u, ~0u, 0u) != 0)
    for (int number = 4; number < 1024; ++number) ::close(number);
}

[[noreturn]] void guard(const SessionList& sessions, Descriptor launcher) {
  ::setsid();
  ::prctl(PR_SET_NAME, "khoro-guardian");
  close_all_but(launcher.number());
  pollfd one{3, POLLIN, 0};
  while (::poll(&one, 1, -1) != 1) continue;
  kill_sessions(sessions.all());
  ::_exit(0);
}

}  // namespace

SessionList::SessionList(std::size_t capacity) : capacity_(capacity) {
  void* memory = ::mmap(nullptr, capacity * sizeof(pid_t), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw_errno("cannot map the list of sessions");
  sessions_ = static_cast<pid_t*>(memory);
}

SessionList::~SessionList() { ::munmap(sessions_, capacity_ * sizeof(pid_t)); }

void SessionList::enter(std::size_t index, pid_t session) noexcept {
  std::atomic_ref<pid_t>(sessions_[index]).store(session, std::memory_order_release);
}

Guardian::Guardian(const SessionList& sessions) {
  Descriptor launcher = open_pidfd(::getpid());
  if (!launcher) throw_errno("cannot open a descriptor of the launcher's process");
  // Signals stay blocked in it: only SIGKILL ends it early.
  process_ = ::fork();
  if (process_ < 0) throw_errno("cannot start the job's guardian");
  if (process_ == 0) guard(sessions, std::move(launcher));
  pidfd_ = open_pidfd(process_);
  if (!pidfd_) {
    ::kill(process_, SIGKILL);
    throw_errno("cannot watch the job's guardian");
  }
}

Guardian::~Guardian() {
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
}

}  // namespace khoro::tool
