// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <thread>

namespace khoro {

/// Starts a thread of the library's own: signals are for the threads of the caller, so it has all
/// blocked. /proc shows it as "khoro-`name`", of at most 15 characters. Throws system_error.
std::thread start_thread(const std::string& name, std::function<void()> body);

/// The calling thread's number in the system. On the way of every call, hence kept in the part of
/// thread-local memory that needs no look-up.
[[gnu::tls_model("initial-exec")]] inline thread_local constinit std::uint64_t thread_number = 0;
std::uint64_t ask_thread_number() noexcept;
inline std::uint64_t current_thread() noexcept {
  if (thread_number == 0) [[unlikely]]
    thread_number = ask_thread_number();
  return thread_number;
}

}  // namespace khoro
