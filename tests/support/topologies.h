// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "support/catch.h"
#include "support/golden.h"

namespace khoro::test {

/// Those that end so, in the order of their names.
inline std::vector<std::filesystem::path> files_of(const std::filesystem::path& folder,
                                                   const std::string& end) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.size() > end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0)
      files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

inline bool is_graph(const std::filesystem::path& file) {
  return file.string().find(".graph.xml") != std::string::npos;
}

/// The topologies that every checkout has.
inline std::vector<std::filesystem::path> golden_topologies() {
  return files_of(golden_folder() / "topologies", ".xml");
}

/// The machines of the folder that the option `topologies` names; none, and a word about it, where
/// it names none.
inline std::vector<std::filesystem::path> more_topologies() {
  const std::filesystem::path folder = KHORO_TOPOLOGIES;
  std::vector<std::filesystem::path> files;
  if (folder.empty()) {
    WARN("skipped: the option topologies names no folder");
    return files;
  }
  for (const char* const part : {"nccl", "hwloc"})
    for (const auto& file : files_of(folder / part, ".xml")) files.push_back(file);
  REQUIRE(files.size() > 50);
  return files;
}

}  // namespace khoro::test
