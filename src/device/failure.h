// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <mutex>
#include <string>

#include "base/error.h"

namespace khoro {

/// Why a stream does no more work: the first failure is kept for whoever asks later. Thread-safe.
class StreamFailure {
 public:
  void note(const char* words) noexcept {
    const std::lock_guard lock(mutex_);
    if (failed_) return;
    failed_ = true;
    words_ = worded([&] { return std::string(words); });
  }
  /// Calls `function`; what it throws is noted.
  template <class Function>
  void watch(Function&& function) noexcept {
    try {
      function();
    } catch (const std::exception& error) {
      note(error.what());
    } catch (...) {
      note("unknown exception");
    }
  }
  bool failed() const noexcept {
    const std::lock_guard lock(mutex_);
    return failed_;
  }
  /// Throws unhandled_device_error if there was a failure.
  void check() const {
    const std::lock_guard lock(mutex_);
    if (failed_) throw Error(Code::unhandled_device_error, "the stream failed earlier: " + words_);
  }

 private:
  mutable std::mutex mutex_;
  bool failed_ = false;
  std::string words_;
};

}  // namespace khoro
