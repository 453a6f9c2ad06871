// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "support/descriptors.h"

namespace khoro::test {

/// What a process has open: descriptors, threads, and mappings whose line has `label` in it.
struct OpenThings {
  int descriptors = 0;
  int threads = 0;
  int mappings = 0;
};

inline OpenThings open_things(const std::string& label) {
  OpenThings things;
  things.descriptors = open_descriptors();
  for ([[maybe_unused]] auto& entry : std::filesystem::directory_iterator("/proc/self/task"))
    ++things.threads;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find(label) != std::string::npos) ++things.mappings;
  return things;
}

/// Whether no more is open than `before`. Threads that were joined are listed a little longer.
inline bool closed_again(const std::string& label, const OpenThings& before) {
  for (int look = 0; look < 10'000; ++look) {
    const OpenThings now = open_things(label);
    if (now.descriptors == before.descriptors && now.mappings == before.mappings &&
        now.threads <= before.threads)
      return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

}  // namespace khoro::test
