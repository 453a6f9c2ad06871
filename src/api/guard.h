// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <new>
#include <string_view>
#include <type_traits>
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
[[noreturn]] void throw_called_back();

/// How deep the calling thread is in groups; 0: calls run at once. Below 0 while it is in a
/// callback, which must not call Khoro. Read by every call, hence in the part of thread-local
/// memory that needs no look-up.
[[gnu::tls_model("initial-exec")]] inline thread_local constinit int group_depth = 0;
inline constexpr int in_callback = -1;

/// Throws invalid_argument if the address of an out-parameter is NULL.
void check_out(const void* address, const char* name);

/// The only boundary between C++ and the C face: runs `body`, turns what it throws into a result,
/// and keeps its words for khoroGetLastError. A body that returns nothing has succeeded.
template <class Body>
khoroResult_t guard(Body&& body) noexcept {
  try {
    if (Process::forked()) throw_forked();
    if (group_depth < 0) throw_called_back();
    if constexpr (std::is_same_v<decltype(body()), khoroResult_t>) {
      return std::forward<Body>(body)();
    } else {
      std::forward<Body>(body)();
      return khoroSuccess;
    }
  } catch (const Error& error) {
    return keep_failure(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return keep_failure(Code::out_of_memory, "no memory left; free some and try again");
  } catch (const std::exception& error) {
    return keep_failure(Code::internal_error, error.what());
  }
}

}  // namespace khoro
