// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace khoro {

/// What a look at a lane, or at a whole execution, came to.
enum class Progress : std::uint8_t {
  moved,    // something was done, and there may be more
  waiting,  // nothing can be done until a peer acts
  done,
  failed,  // status() says why
};

}  // namespace khoro
