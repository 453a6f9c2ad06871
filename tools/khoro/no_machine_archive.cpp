// SPDX-License-Identifier: Apache-2.0
// In place of machine_archive.cpp, for a tool that needs no libarchive where it runs.
#include <algorithm>
#include <array>
#include <string_view>

#include "base/error.h"
#include "machine_archive.h"
#include "topo.h"

namespace khoro::tool {

std::optional<Reading> read_archive(const std::string& path) {
  constexpr std::array<std::string_view, 6> endings = {".tar",     ".tar.gz", ".tgz",
                                                       ".tar.bz2", ".tar.xz", ".tar.zst"};
  if (std::none_of(endings.begin(), endings.end(),
                   [&path](std::string_view ending) { return path.ends_with(ending); }))
    return std::nullopt;
  throw Error(Code::invalid_argument,
              printable(path) +
                  ": this khoro was built without libarchive; unpack it, and name "
                  "the folder");
}

}  // namespace khoro::tool
