// SPDX-License-Identifier: Apache-2.0
#include "base/process_stat.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <thread>

#include "support/catch.h"
#include "support/child.h"

using namespace khoro;

TEST_CASE("the system tells of a process whether it runs, is stopped or has ended", "[base]") {
  test::Child child([] {
    // A name that looks like the end of one and what follows it.
    ::prctl(PR_SET_NAME, "a) Z 1 (b) T 2");
    ::raise(SIGSTOP);
    return 0;
  });
  int status = 0;
  REQUIRE(::waitpid(child.process(), &status, WUNTRACED) == child.process());
  const auto stopped = stat_of(child.process());
  REQUIRE(stopped);
  CHECK(stopped->stopped());
  CHECK_FALSE(stopped->ended());
  CHECK(stopped->session == ::getsid(0));
  const std::filesystem::directory_iterator threads("/proc/" + std::to_string(child.process()) +
                                                    "/task");
  CHECK(stopped->threads == std::distance(begin(threads), end(threads)));

  ::kill(child.process(), SIGCONT);
  siginfo_t info{};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(child.process()), &info, WEXITED | WNOWAIT) == 0);
  const auto ended = stat_of(child.process());
  REQUIRE(ended);
  CHECK(ended->ended());
  CHECK(ended->started == stopped->started);
  const pid_t number = child.process();
  CHECK(child.wait() == 0);
  CHECK_FALSE(stat_of(number));
}

TEST_CASE("this process runs, and started in the past", "[base]") {
  const auto own = stat_of(::getpid());
  REQUIRE(own);
  CHECK_FALSE(own->stopped());
  CHECK_FALSE(own->ended());
  CHECK(own->started > 0);
}

TEST_CASE("a process lives while one of its threads does", "[base]") {
  test::Child child([]() -> int {
    std::thread([] { std::this_thread::sleep_for(std::chrono::minutes(5)); }).detach();
    ::syscall(SYS_exit, 0);  // of this thread alone
    return 0;
  });
  std::optional<ProcessStat> stat;
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  do {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    stat = stat_of(child.process());
  } while (stat && stat->state != 'Z' && std::chrono::steady_clock::now() < until);
  REQUIRE(stat);
  CHECK(stat->state == 'Z');
  CHECK_FALSE(stat->ended());
  ::kill(child.process(), SIGKILL);
}
