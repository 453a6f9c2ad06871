// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace khoro::tool {

/// The bytes of a file, at most 64 KiB more than `most`: enough to refuse what is too long. Nothing
/// if it cannot be read; errno then says why.
std::optional<std::string> read_input(const std::string& path, std::size_t most);

}  // namespace khoro::tool
