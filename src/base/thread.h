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

/// The calling thread's number in the system.
std::uint64_t current_thread() noexcept;

}  // namespace khoro
