// SPDX-License-Identifier: Apache-2.0
#include "input.h"

#include <array>
#include <cstdio>
#include <memory>

namespace khoro::tool {

std::optional<std::string> read_input(const std::string& path, std::size_t most) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> input(std::fopen(path.c_str(), "rb"),
                                                              &std::fclose);
  if (!input) return std::nullopt;
  std::string text;
  std::array<char, 65'536> part;
  while (text.size() <= most) {
    const std::size_t got = std::fread(part.data(), 1, part.size(), input.get());
    if (got == 0) break;
    text.append(part.data(), got);
  }
  if (std::ferror(input.get())) return std::nullopt;
  return text;
}

}  // namespace khoro::tool
