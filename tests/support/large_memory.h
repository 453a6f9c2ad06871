// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <fstream>
#include <string>

namespace khoro::test {

/// Of memory that the machine has left; 0 if it does not say.
inline std::size_t available_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string word;
  std::size_t kib = 0;
  while (file >> word)
    if (word == "MemAvailable:" && file >> kib) return kib * 1024;
  return 0;
}

/// Why a test of so many bytes cannot run here; empty if it can.
inline std::string too_large(std::size_t bytes) {
#ifdef KHORO_SANITIZED
  (void)bytes;
  return "a sanitizer runs";
#else
  constexpr std::size_t mib = std::size_t{1} << 20;
  // Others use the machine too, and what is full is killed.
  if (available_bytes() / 2 >= bytes) return "";
  return "it needs " + std::to_string(bytes / mib) + " MiB, and half of what is available is " +
         std::to_string(available_bytes() / 2 / mib);
#endif
}

}  // namespace khoro::test
