// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "base/log.h"

namespace khoro::test {

/// Collects the log lines of a scope. One at a time.
class CapturedLog {
 public:
  CapturedLog() { set_log_sink(&CapturedLog::add, this); }
  CapturedLog(const CapturedLog&) = delete;
  CapturedLog& operator=(const CapturedLog&) = delete;
  ~CapturedLog() { set_log_sink(nullptr, nullptr); }

  std::vector<std::string> lines() const {
    std::lock_guard lock(mutex_);
    return lines_;
  }
  /// How many lines hold `text`.
  int count(const std::string& text) const {
    int found = 0;
    for (const std::string& line : lines()) found += line.find(text) != std::string::npos;
    return found;
  }

 private:
  static void add(void* self, int, const char* line) {
    auto* log = static_cast<CapturedLog*>(self);
    std::lock_guard lock(log->mutex_);
    log->lines_.emplace_back(line);
  }

  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

/// For tests that are about failures and not about the log lines of them: none, in a scope.
class QuietLog {
 public:
  QuietLog() { set_log_level(LogLevel::off); }
  QuietLog(const QuietLog&) = delete;
  QuietLog& operator=(const QuietLog&) = delete;
  ~QuietLog() { set_log_level(LogLevel::warn); }
};

}  // namespace khoro::test
