// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "topology/reading.h"

namespace khoro::tool {

/// A tar archive of a machine's files, compressed or not; nothing if the file is none. Throws
/// invalid_argument.
std::optional<Reading> read_archive(const std::string& path);

/// The words for what holds no machine's files.
[[noreturn]] void refuse_empty(const std::string& path);

}  // namespace khoro::tool
