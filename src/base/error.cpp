// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

#include <cerrno>
#include <system_error>

namespace khoro {

void throw_errno(const std::string& what) {
  int cause = errno;
  throw Error(Code::system_error, what + ": " + std::generic_category().message(cause));
}

}  // namespace khoro
