// SPDX-License-Identifier: Apache-2.0
#include "communicator/peer_process.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#include "base/doorbell.h"
#include "base/system.h"
#include "support/catch.h"
#include "support/descriptors.h"

using namespace khoro;

namespace {

pid_t sleeping_child() {
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  return child;
}

/// What a rank in that process shows in one of its communicators.
Introduction introduction(std::uint64_t number, pid_t process) {
  Introduction shown;
  shown.process = number;
  shown.pidfd = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
  shown.doorbell = make_doorbell_descriptor();
  return shown;
}

bool eventually(const std::atomic<int>& value, int expected) {
  const Time until = machine().now() + std::chrono::seconds(10);
  while (value != expected && machine().now() < until) ::poll(nullptr, 0, 1);
  return value == expected;
}

}  // namespace

TEST_CASE("the communicators of a process share what they hold of another one", "[communicator]") {
  const pid_t child = sleeping_child();
  const int before = test::open_descriptors();
  {
    Introduction first = introduction(17, child);
    const auto process = PeerProcess::of(first);
    const int with_one = test::open_descriptors();
    for (int i = 0; i < 50; ++i) {
      Introduction again = introduction(17, child);
      CHECK(PeerProcess::of(again) == process);
    }
    CHECK(test::open_descriptors() == with_one);
    CHECK(process->bell() >= 0);
    Introduction other = introduction(18, child);
    CHECK(PeerProcess::of(other) != process);
  }
  CHECK(test::open_descriptors() == before);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST_CASE("all who watch a process are told that it has ended, and the late at once",
          "[communicator]") {
  const pid_t child = sleeping_child();
  Introduction shown = introduction(19, child);
  const auto process = PeerProcess::of(shown);
  std::atomic<int> told{0}, dropped{0};
  auto first = PeerProcess::when_ended(process, [&] { ++told; });
  auto second = PeerProcess::when_ended(process, [&] { ++told; });
  auto third = PeerProcess::when_ended(process, [&] { ++dropped; });
  third.reset();
  ::poll(nullptr, 0, 20);
  CHECK(told == 0);
  ::kill(child, SIGKILL);
  CHECK(eventually(told, 2));
  std::atomic<int> late{0};
  const auto fourth = PeerProcess::when_ended(process, [&] { ++late; });
  CHECK(late == 1);
  CHECK(told == 2);
  CHECK(dropped == 0);
  ::waitpid(child, nullptr, 0);
}
