// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <stdexcept>

namespace khoro::test {

/// A forked process that runs `body` and exits with what it returns (99: it threw). Make it before
/// the test starts threads. What the body finds out it must say by its exit status: the test's own
/// assertions do not reach across processes.
class Child {
 public:
  explicit Child(const std::function<int()>& body) : process_(::fork()) {
    if (process_ < 0) throw std::runtime_error("fork failed");
    if (process_ > 0) return;
    int status = 99;
    try {
      status = body();
    } catch (...) {
    }
    ::_exit(status);
  }
  ~Child() {
    if (process_ > 0) wait();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t process() const noexcept { return process_; }

  /// The exit status, or minus the number of the signal that ended the child.
  int wait() {
    int status = 0;
    while (::waitpid(process_, &status, 0) < 0) {
    }
    process_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  pid_t process_;
};

}  // namespace khoro::test
