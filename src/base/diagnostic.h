// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace khoro {

/// A note says what was made of something odd but harmless; a warning, that less can be done with
/// it than its owner would expect; an error, that it cannot be used.
enum class Severity : std::uint8_t { note, warning, error };

/// What a judge found, and where. A judge never throws over what it judges.
struct Diagnostic {
  int line = 0;       // of a text, from 1; 0 when there is no text
  std::string place;  // "rank 3 lane 0 step 5: recv 2 | write output[1]"
  std::string message;
  int column = 0;  // of the line, from 1; 0 when only the line is known
  Severity severity = Severity::error;
};

}  // namespace khoro
