// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <stdexcept>
#include <string>

namespace khoro {

/// Why a call failed. The values are those of `khoroResult_t` and never change.
enum class Code : int {
  success = 0,
  unhandled_device_error = 1,
  system_error = 2,
  internal_error = 3,
  invalid_argument = 4,
  invalid_usage = 5,
  remote_error = 6,
  in_progress = 7,
  timeout = 8,
  mismatch = 9,
  aborted = 10,
  revoked = 11,
  peer_died = 12,
  no_quorum = 13,
  out_of_memory = 14,
};

/// A number from elsewhere as the code of a failure; `otherwise` if it is none.
constexpr Code code_of(int number, Code otherwise) noexcept {
  const auto code = static_cast<Code>(number);
  const bool fails =
      code > Code::success && code <= Code::out_of_memory && code != Code::in_progress;
  return fails ? code : otherwise;
}

/// The words that `make` gives, for who must not throw: "no memory" where there is none for them.
template <class Make>
std::string worded(Make make) noexcept {
  try {
    return make();
  } catch (const std::exception&) {
    return "no memory";  // fits in the string itself
  }
}

/// What set-up throws: topology, planning, connecting, argument checks. The message says what was
/// wrong, where, and what to do. The data path never throws; it returns a `Status`.
class Error : public std::runtime_error {
 public:
  Error(Code code, const std::string& message) : std::runtime_error(message), code_(code) {}
  Code code() const noexcept { return code_; }

 private:
  Code code_;
};

/// What is being handled, if it is an `Error` or a lack of memory, which becomes one that says
/// `no_memory`. Throws on whatever else it is.
Error handled_error(const char* no_memory);

/// The text of an errno. Unlike strerror() it may be asked for while other threads fail too.
std::string words_of_errno(int number = errno);

/// Throws a `system_error`, or `out_of_memory` for ENOMEM, whose message is "`what`: " and the text
/// of the current errno.
[[noreturn]] void throw_errno(const std::string& what);

}  // namespace khoro
