// SPDX-License-Identifier: Apache-2.0
#include "sweep/last_case.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

// There in builds with a sanitizer alone, which handles signals itself.
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace khoro::test {
namespace {

constexpr char title[] = "\nwrong: a fault\nagain: ";
thread_local char shown[1024];
thread_local std::size_t length = 0;

/// May be called in a signal's handler.
void show() {
  if (length > 0) (void)!::write(STDOUT_FILENO, shown, length);
}

void show_and_end(int signal) {
  show();
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

}  // namespace

void now_playing(const std::string& line) {
  const std::size_t most = sizeof shown - sizeof title;
  length = sizeof title - 1;
  std::memcpy(shown, title, length);
  const std::size_t taken = std::min(line.size(), most);
  std::memcpy(shown + length, line.data(), taken);
  length += taken;
  shown[length++] = '\n';
}

void show_case_at_fault() {
  if (__sanitizer_set_death_callback != nullptr) return __sanitizer_set_death_callback(show);
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) ::signal(signal, show_and_end);
}

}  // namespace khoro::test
