// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

#include <new>
#include <system_error>

namespace khoro {

Error handled_error(const char* no_memory) {
  try {
    throw;
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return Error(Code::out_of_memory, no_memory);
  }
}

std::string words_of_errno(int number) { return std::generic_category().message(number); }

void throw_errno(const std::string& what) {
  const int cause = errno;
  const Code code = cause == ENOMEM ? Code::out_of_memory : Code::system_error;
  throw Error(code, what + ": " + words_of_errno(cause));
}

}  // namespace khoro
