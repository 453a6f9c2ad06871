// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "base/descriptor.h"

namespace khoro {

/// The file to which the ranks of this process write what they do, in the JSON array format that
/// chrome://tracing and Perfetto read. The ranks of a job write the same file: each appends events
/// in batches of whole lines, so nobody has to outlive anybody, and the closing bracket is left
/// out, as that format allows. Thread-safe. The one of the process lives until it ends.
class TraceFile {
 public:
  static TraceFile& of_process();
  /// True while there is a file. Every call asks twice, so it is two instructions where that can be
  /// said: compilers do not compare with memory what is loaded from an atomic.
  static bool wanted() noexcept {
#if defined(__x86_64__)
    bool is;
    asm volatile("cmpb $0, %1" : "=@ccne"(is) : "m"(wanted_));
    return is;
#else
    return wanted_.load(std::memory_order_relaxed);
#endif
  }

  /// Opens what a setting names, once in the life of the process: a caller's own choice comes later
  /// and stays. `anew` empties the file. Throws `Error`.
  void open_first(const std::string& path, bool anew);
  /// Has events go to the end of this file from now on. Throws `Error`, and changes nothing then.
  void open(const std::string& path);
  void close() noexcept;

  /// Counts the files, so that who writes knows that one has not heard of him. 0: there was none.
  std::uint64_t opened() const noexcept { return opened_.load(std::memory_order_relaxed); }
  /// Appends events, each a JSON object, a comma and the end of a line.
  void append(std::string_view events) noexcept;

 private:
  void use(Descriptor file) noexcept;

  static inline std::atomic<bool> wanted_{false};
  std::mutex mutex_;
  Descriptor file_;
  std::atomic<std::uint64_t> opened_{0};
  bool asked_ = false;  // open_first() or a caller has been here
};

}  // namespace khoro
