// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace khoro::test {

/// How many descriptors this process has open.
inline int open_descriptors() {
  int count = 0;
  for ([[maybe_unused]] auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count - 1;  // the directory itself
}

}  // namespace khoro::test
