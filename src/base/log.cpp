// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <mutex>

namespace khoro {
namespace {

std::atomic<LogLevel> level_in_force{LogLevel::warn};

struct Sink {
  std::mutex mutex;
  LogSink function = nullptr;
  void* context = nullptr;
};

/// Never destroyed: threads may log while the process exits.
Sink& sink() {
  static Sink& instance = *new Sink;
  return instance;
}

/// One write, so that lines of several processes on one pipe do not mix.
void write_to_standard_error(std::string_view line) noexcept {
  char prefix[] = "khoro: ";
  char newline = '\n';
  iovec parts[] = {
      {prefix, sizeof prefix - 1}, {const_cast<char*>(line.data()), line.size()}, {&newline, 1}};
  [[maybe_unused]] auto written = ::writev(STDERR_FILENO, parts, 3);
}

}  // namespace

void set_log_sink(LogSink function, void* context) noexcept {
  std::lock_guard lock(sink().mutex);
  sink().function = function;
  sink().context = context;
}

void set_log_level(LogLevel level) noexcept {
  level_in_force.store(level, std::memory_order_relaxed);
}

bool logs(LogLevel level) noexcept {
  return level <= level_in_force.load(std::memory_order_relaxed) && level != LogLevel::off;
}

void log_line(LogLevel level, std::string_view line) noexcept {
  std::lock_guard lock(sink().mutex);
  if (!sink().function) return write_to_standard_error(line);
  try {
    sink().function(sink().context, level, std::string(line).c_str());
  } catch (...) {
    // A caller's callback that throws, or no memory for the copy: the line is lost, the call that
    // logged goes on.
  }
}

}  // namespace khoro
