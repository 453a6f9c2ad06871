// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "support/catch.h"

namespace khoro::test {

/// Where the golden files lie: tests/golden.
inline std::filesystem::path golden_folder() { return KHORO_GOLDEN_FOLDER; }

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Compares with the file; KHORO_ACCEPT=1 writes the file instead, and the difference is for the
/// reviewer to read.
inline void check_golden(const std::filesystem::path& path, const std::string& text) {
  const char* accept = std::getenv("KHORO_ACCEPT");
  if (accept != nullptr && std::string(accept) == "1")
    std::ofstream(path, std::ios::binary) << text;
  INFO("golden file " << path.string() << "; KHORO_ACCEPT=1 rewrites it");
  CHECK(text == read_file(path));
}

}  // namespace khoro::test
