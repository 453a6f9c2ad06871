// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>

namespace khoro {

enum class LogLevel : std::uint8_t { off, error, warn, info, trace };

/// As users write them, by number.
inline constexpr std::string_view level_names = "off|error|warn|info|trace";
/// Nothing if it is none of these names.
std::optional<LogLevel> level_named(std::string_view name) noexcept;

/// Where log lines go: standard error, or the caller's callback. Thread-safe; a line is written
/// whole. One line says one thing, lower case, "what: cause", and is written once, where it was
/// decided. A sink gets the number of the line's LogLevel; its type is that of the C face.
using LogSink = void (*)(void* context, int level, const char* line);

/// A null sink means standard error again.
void set_log_sink(LogSink sink, void* context) noexcept;
void set_log_level(LogLevel level) noexcept;
bool logs(LogLevel level) noexcept;
void log_line(LogLevel level, std::string_view line) noexcept;

/// Formats only when the level is on. A line that finds no memory is lost.
template <class... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) noexcept {
  if (!logs(level)) return;
  try {
    log_line(level, fmt::format(format, std::forward<Args>(args)...));
  } catch (const std::exception&) {
    // A log line is not worth a process.
  }
}

}  // namespace khoro
