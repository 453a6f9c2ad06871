// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "topology/reading.h"

namespace khoro::tool {

/// A machine of which /sys and /proc were captured into a folder, or into a tar archive that may be
/// compressed; both may hold them in a folder of their own. Nothing if `path` is neither. Throws
/// invalid_argument if it is, and holds no such capture or cannot be read.
std::optional<Reading> read_capture(const std::string& path);

}  // namespace khoro::tool
