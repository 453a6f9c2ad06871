// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace khoro {

/// What a judge found, and where. A judge never throws over what it judges.
struct Diagnostic {
  int line = 0;       // of a text, from 1; 0 when there is no text
  std::string place;  // "rank 3 lane 0 step 5: recv 2 | write output[1]"
  std::string message;
};

}  // namespace khoro
