// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

#include <cerrno>
#include <system_error>

namespace khoro {

void throw_errno(const std::string& what) {
  const int cause = errno;
  const Code code = cause == ENOMEM ? Code::out_of_memory : Code::system_error;
  // Not strerror(): other threads may be failing too.
  throw Error(code, what + ": " + std::generic_category().message(cause));
}

}  // namespace khoro
