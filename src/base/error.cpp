// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

#include <system_error>

namespace khoro {

std::string words_of_errno(int number) { return std::generic_category().message(number); }

void throw_errno(const std::string& what) {
  const int cause = errno;
  const Code code = cause == ENOMEM ? Code::out_of_memory : Code::system_error;
  throw Error(code, what + ": " + words_of_errno(cause));
}

}  // namespace khoro
