// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <mutex>

namespace khoro {
namespace {

struct Log {
  std::atomic<LogLevel> level{LogLevel::warn};
  // Held while a line is written, so that lines are whole and a sink that was replaced is not
  // called any more. Recursive, so that a sink that calls the library, which it must not, and so
  // logs, does not hang.
  std::recursive_mutex mutex;
  LogSink sink = nullptr;
  void* context = nullptr;
};

// Never destroyed: threads may log while the process ends.
Log& the_log() noexcept {
  static Log& log = *new Log;
  return log;
}

const char* name(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::off:
      return "off";
    case LogLevel::error:
      return "error";
    case LogLevel::warn:
      return "warn";
    case LogLevel::info:
      return "info";
    case LogLevel::trace:
      return "trace";
  }
  return "";
}

void write_whole(const char* text, std::size_t bytes) noexcept {
  while (bytes > 0) {
    const ssize_t written = ::write(STDERR_FILENO, text, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // nowhere left to complain
    text += written;
    bytes -= static_cast<std::size_t>(written);
  }
}

}  // namespace

void set_log_sink(LogSink sink, void* context) noexcept {
  Log& log = the_log();
  const std::lock_guard lock(log.mutex);
  log.sink = sink;
  log.context = context;
}

void set_log_level(LogLevel level) noexcept {
  the_log().level.store(level, std::memory_order_relaxed);
}

bool logs(LogLevel level) noexcept {
  return level != LogLevel::off && level <= the_log().level.load(std::memory_order_relaxed);
}

void log_line(LogLevel level, std::string_view line) noexcept {
  const int saved = errno;  // callers log between a failing system call and its report
  try {
    Log& log = the_log();
    const std::lock_guard lock(log.mutex);
    if (log.sink != nullptr) {
      log.sink(log.context, static_cast<int>(level), std::string(line).c_str());
    } else {
      const std::string text = fmt::format("khoro {}: {}\n", name(level), line);
      write_whole(text.data(), text.size());
    }
  } catch (...) {
    // Out of memory, or a sink that throws: a log line is not worth a process.
  }
  errno = saved;
}

}  // namespace khoro
