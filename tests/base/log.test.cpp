// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <cerrno>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "support/captured_log.h"
#include "support/catch.h"

using namespace khoro;
using test::CapturedLog;

TEST_CASE("only lines of a level that is on reach the sink", "[base]") {
  CapturedLog captured;
  log(LogLevel::warn, "slow: rank {}", 3);
  log(LogLevel::info, "plan: {}", "ring");
  set_log_level(LogLevel::info);
  log(LogLevel::info, "plan: {}", "tree");
  set_log_level(LogLevel::off);
  log(LogLevel::error, "gone: rank {}", 1);
  set_log_level(LogLevel::warn);
  CHECK(captured.lines() == std::vector<std::string>{"slow: rank 3", "plan: tree"});
}

TEST_CASE("levels are known by the names that users write", "[base]") {
  CHECK(level_named("off") == LogLevel::off);
  CHECK(level_named("warn") == LogLevel::warn);
  CHECK(level_named("trace") == LogLevel::trace);
  CHECK_FALSE(level_named("warning"));
  CHECK_FALSE(level_named("off|error"));
  CHECK_FALSE(level_named(""));
}

TEST_CASE("lines of several threads stay whole", "[base]") {
  CapturedLog captured;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([] {
      for (int i = 0; i < 100; ++i) log(LogLevel::warn, "line: whole");
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(captured.lines() == std::vector<std::string>(400, "line: whole"));
}

TEST_CASE("a failed system call becomes an error with its text", "[base]") {
  const auto code_of = [](int number) {
    try {
      errno = number;
      throw_errno("cannot open");
    } catch (const Error& error) {
      CHECK(std::string(error.what()).rfind("cannot open: ", 0) == 0);
      return error.code();
    }
  };
  CHECK(code_of(EMFILE) == Code::system_error);
  CHECK(code_of(ENOMEM) == Code::out_of_memory);
}
