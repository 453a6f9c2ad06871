// SPDX-License-Identifier: Apache-2.0
#include "capture.h"

#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "machine_archive.h"
#include "topo.h"
#include "topology/detect/detect.h"

namespace khoro::tool {

void refuse_empty(const std::string& path) {
  throw Error(Code::invalid_argument,
              printable(path) + ": holds no capture: a folder `sys`, and one `proc`");
}

namespace {

Reading read_folder(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code failed;
  if (fs::is_directory(path + "/sys", failed)) return detect_from(FolderFiles(path));
  for (fs::directory_iterator entry(path, failed); !failed && entry != fs::directory_iterator();
       entry.increment(failed))
    if (fs::is_directory(entry->path() / "sys", failed))
      return detect_from(FolderFiles(entry->path().string()));
  refuse_empty(path);
}

}  // namespace

std::optional<Reading> read_capture(const std::string& path) {
  std::error_code failed;
  return std::filesystem::is_directory(path, failed) ? read_folder(path) : read_archive(path);
}

}  // namespace khoro::tool
