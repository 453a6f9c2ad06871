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

std::string_view name(LogLevel level) noexcept {
  std::string_view names = level_names;
  for (int before = static_cast<int>(level); before > 0; --before)
    names.remove_prefix(names.find('|') + 1);
  return names.substr(0, names.find('|'));
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

std::optional<LogLevel> level_named(std::string_view named) noexcept {
  for (int number = 0; number <= static_cast<int>(LogLevel::trace); ++number)
    if (const auto level = static_cast<LogLevel>(number); name(level) == named) return level;
  return {};
}

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
