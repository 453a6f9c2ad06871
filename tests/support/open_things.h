// SPDX-License-Identifier: Apache-2.0
#pragma once

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
  friend bool operator==(const OpenThings&, const OpenThings&) = default;
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

}  // namespace khoro::test
