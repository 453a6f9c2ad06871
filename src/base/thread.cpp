// SPDX-License-Identifier: Apache-2.0
#include "base/thread.h"

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <system_error>
#include <utility>

#include "base/error.h"

namespace khoro {
namespace {

/// A new thread inherits the mask of the one that starts it.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

std::thread start_thread(const std::string& name, std::function<void()> body) {
  const SignalsBlocked blocked;
  try {
    std::thread thread(std::move(body));
    ::pthread_setname_np(thread.native_handle(), ("khoro-" + name).c_str());
    return thread;
  } catch (const std::system_error& error) {
    throw Error(Code::system_error, "cannot start the " + name + " thread: " + error.what() +
                                        "; raise the limit of processes (ulimit -u) or of memory");
  }
}

std::uint64_t ask_thread_number() noexcept {
  return static_cast<std::uint64_t>(::syscall(SYS_gettid));
}

}  // namespace khoro
