// SPDX-License-Identifier: Apache-2.0
#include "capture.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "topology/detect/detect.h"

namespace khoro::tool {
namespace {

constexpr std::size_t most_entries = 1'000'000, most_bytes = std::size_t{256} << 20;

using Archive = std::unique_ptr<archive, decltype(&archive_read_free)>;

/// Null if there is no such file.
Archive open_archive(const std::string& path) {
  Archive opened(archive_read_new(), &archive_read_free);
  archive_read_support_filter_all(opened.get());
  archive_read_support_format_tar(opened.get());
  if (archive_read_open_filename(opened.get(), path.c_str(), 65'536) != ARCHIVE_OK) opened.reset();
  return opened;
}

bool is_archive(const std::string& path) {
  const Archive opened = open_archive(path);
  archive_entry* first = nullptr;
  return opened && archive_read_next_header(opened.get(), &first) >= ARCHIVE_WARN &&
         archive_format(opened.get()) != 0;
}

/// The part of a path after the folder that holds sys and proc; empty if it is outside of them.
std::string below_root(std::string_view path) {
  while (path.starts_with("./")) path.remove_prefix(2);
  for (int folders = 0; folders < 3 && !path.empty(); ++folders) {
    if (path == "sys" || path == "proc" || path.starts_with("sys/") || path.starts_with("proc/"))
      return std::string(path);
    path.remove_prefix(std::min(path.find('/'), path.size() - 1) + 1);
  }
  return {};
}

class ArchiveReader {
 public:
  explicit ArchiveReader(const std::string& path) : path_(path) {}

  KeptFiles read(archive& from) {
    KeptFiles files;
    std::size_t entries = 0;
    for (archive_entry* entry = nullptr; next(from, &entry);) {
      if (++entries > most_entries) refuse("it holds more entries than any machine");
      const char* const name = archive_entry_pathname(entry);
      std::string path = below_root(name == nullptr ? "" : name);
      while (path.ends_with('/')) path.pop_back();
      if (!path.empty()) add(files, from, *entry, path);
    }
    return files;
  }

 private:
  bool next(archive& from, archive_entry** entry) {
    const int result = archive_read_next_header(&from, entry);
    if (result == ARCHIVE_EOF) return false;
    if (result < ARCHIVE_WARN) refuse(archive_error_string(&from));
    return true;
  }

  void add(KeptFiles& files, archive& from, archive_entry& entry, const std::string& path) {
    if (const char* const target = archive_entry_symlink(&entry)) {
      files.add_link(path, target);
    } else if (archive_entry_filetype(&entry) == AE_IFDIR) {
      files.add_folder(path);
    } else if (archive_entry_filetype(&entry) == AE_IFREG) {
      std::string text;
      std::array<char, 4096> part;
      for (la_ssize_t got = 1; got > 0;) {
        got = archive_read_data(&from, part.data(), part.size());
        if (got < 0) refuse(archive_error_string(&from));
        bytes_ += static_cast<std::size_t>(got);
        if (bytes_ > most_bytes) refuse("it holds more bytes than any machine");
        text.append(part.data(), static_cast<std::size_t>(got));
      }
      files.add_text(path, std::move(text));
    }
  }

  [[noreturn]] void refuse(const char* why) const {
    throw Error(Code::invalid_argument,
                fmt::format("{}: {}", path_, why == nullptr ? "cannot be read" : why));
  }

  const std::string& path_;
  std::size_t bytes_ = 0;
};

[[noreturn]] void refuse_empty(const std::string& path) {
  throw Error(Code::invalid_argument, path + " holds no capture: a folder `sys`, and one `proc`");
}

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
  if (std::filesystem::is_directory(path, failed)) return read_folder(path);
  if (!is_archive(path)) return std::nullopt;
  const Archive from = open_archive(path);
  const KeptFiles files = ArchiveReader(path).read(*from);
  if (!files.place("sys")) refuse_empty(path);
  return detect_from(files);
}

}  // namespace khoro::tool
