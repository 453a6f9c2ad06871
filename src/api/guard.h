// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <new>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "communicator/process.h"
#include "khoro/khoro.h"

namespace khoro {

/// Keeps the words of this thread's last failure. Never throws: a message that finds no memory is
/// replaced by a short one.
khoroResult_t keep_failure(Code code, std::string_view message) noexcept;
/// The words of this thread's last failure; empty if there was none.
const char* last_failure() noexcept;

[[noreturn]] void throw_forked();

/// Throws invalid_argument if the address of an out-parameter is NULL.
void check_out(const void* address, const char* name);

/// The only boundary between C++ and the C face: runs `body`, turns what it throws into a result,
/// and keeps its words for khoroGetLastError.
template <class Body>
khoroResult_t guard(Body&& body) noexcept {
  try {
    if (Process::forked()) throw_forked();
    std::forward<Body>(body)();
    return khoroSuccess;
  } catch (const Error& error) {
    return keep_failure(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return keep_failure(Code::out_of_memory, "no memory left; free some and try again");
  } catch (const std::exception& error) {
    return keep_failure(Code::internal_error, error.what());
  }
}

}  // namespace khoro
