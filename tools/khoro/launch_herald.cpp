// SPDX-License-Identifier: Apache-2.0
#include "launch_herald.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/system.h"
#include "launch.h"
#include "rendezvous/meeting.h"
#include "rendezvous/membership.h"

namespace khoro::tool {
namespace {

/// In place of rank 0, which would have served the meeting and has ended.
void call_off(const UniqueId& id, const Error& reason) {
  Meeting meeting(id);
  meeting.call_off(reason);
  while (!meeting.over()) {
    pollfd one{meeting.descriptor(), POLLIN, 0};
    ::poll(&one, 1, -1);
    meeting.advance();
  }
}

[[noreturn]] void tell(const Key& key, const Obituary& obituary) {
  ::prctl(PR_SET_NAME, "khoro-herald");
  set_log_level(LogLevel::off);
  try {
    const UniqueId id = UniqueId::of_job(key, 0);
    const Error reason(Code::peer_died, obituary.text);
    if (obituary.first_rank == 0)
      call_off(id, reason);
    else
      decline(id, obituary.ranks, obituary.first_rank, reason,
              machine().now() + survivors_patience);
  } catch (...) {
    // The ranks find it out by their deadline, or were beyond init.
  }
  ::_exit(0);
}

}  // namespace

Herald::Herald(const Key& key, const Obituary& obituary) {
  const pid_t launcher = ::getpid();
  process_ = ::fork();
  if (process_ < 0) throw_errno("cannot start the process that tells of a rank's end");
  if (process_ > 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != launcher) ::_exit(0);
  tell(key, obituary);
}

Herald::~Herald() {
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
}

}  // namespace khoro::tool
