// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace khoro {

enum class LogLevel : std::uint8_t { off, error, warn, info, trace };

/// Where log lines go: standard error, or the caller's callback. Thread-safe; a line is written
/// whole. One line says one thing, lower case, "what: cause", and is written once, where it was
/// decided. A sink gets the number of the line's LogLevel; its type is that of the C face.
using LogSink = void (*)(void* context, int level, const char* line);

/// A null sink means standard error again.
void set_log_sink(LogSink sink, void* context) noexcept;
void set_log_level(LogLevel level) noexcept;
bool logs(LogLevel level) noexcept;
void log_line(LogLevel level, std::string_view line) noexcept;

/// Formats only when the level is on.
template <class... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (logs(level)) log_line(level, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace khoro
