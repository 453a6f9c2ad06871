// SPDX-License-Identifier: Apache-2.0
#include "machine_archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <span>
#include <string_view>

#include "base/error.h"
#include "topo.h"
#include "topology/detect/detect.h"

namespace khoro::tool {
namespace {

constexpr std::size_t most_entries = 1'000'000, most_bytes = std::size_t{256} << 20;

/// A file that libarchive takes to be a tar archive, compressed or not.
class Archive {
 public:
  explicit Archive(const std::string& path)
      : path_(path), file_(std::fopen(path.c_str(), "rb"), &std::fclose) {
    archive_read_support_filter_all(archive_.get());
    archive_read_support_format_tar(archive_.get());
    if (file_) opened_ = archive_read_open(archive_.get(), this, nullptr, &more, nullptr);
  }

  Archive(const Archive&) = delete;
  Archive& operator=(const Archive&) = delete;

  /// Whether it is one, sound or not: what is no archive may be a text.
  bool is_one() {
    if (!file_) return false;
    if (opened_ >= ARCHIVE_WARN) return true;
    // A text passes no filter but the one that changes nothing; of what cannot be decompressed none
    // is left.
    const bool compressed = archive_filter_count(archive_.get()) != 1;
    return compressed || path_.ends_with(".tar");
  }

  /// False at the end.
  bool next(archive_entry** entry) {
    if (opened_ < ARCHIVE_WARN) refuse();
    const int result = archive_read_next_header(archive_.get(), entry);
    if (result != ARCHIVE_EOF && result < ARCHIVE_WARN) refuse();
    return result != ARCHIVE_EOF;
  }
  /// 0 at the end of the entry.
  std::size_t read(std::span<char> part) {
    const la_ssize_t got = archive_read_data(archive_.get(), part.data(), part.size());
    if (got < 0) refuse();
    return static_cast<std::size_t>(got);
  }

  /// To be asked at the end: an archive ends with a mark.
  bool has_end() const {
    return archive_filter_bytes(archive_.get(), 0) > archive_read_header_position(archive_.get());
  }
  std::size_t bytes() const noexcept { return bytes_; }

  [[noreturn]] void refuse_as_cut() const {
    refuse(fmt::format("an archive that is cut off after byte {}", bytes_));
  }
  [[noreturn]] void refuse(std::string_view why) const {
    throw Error(Code::invalid_argument, fmt::format("{}: {}", printable(path_), why));
  }

 private:
  static la_ssize_t more(archive*, void* self, const void** part) {
    auto& from = *static_cast<Archive*>(self);
    const std::size_t got = std::fread(from.part_.data(), 1, from.part_.size(), from.file_.get());
    *part = from.part_.data();
    from.bytes_ += got;
    const bool failed = std::ferror(from.file_.get()) != 0;
    from.ended_ = got == 0 && !failed;
    return failed ? -1 : static_cast<la_ssize_t>(got);
  }

  [[noreturn]] void refuse() const {
    const char* const words = archive_error_string(archive_.get());
    if (archive_filter_count(archive_.get()) > 0 && archive_format(archive_.get()) == 0)
      refuse(fmt::format("no tar archive, or one that is cut off after byte {}", bytes_));
    // Who asks for more than there is was promised more.
    if (ended_) refuse_as_cut();
    refuse(fmt::format("an archive that is damaged before byte {}: {}", bytes_,
                       words == nullptr ? "it cannot be read" : words));
  }

  const std::string& path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
  std::unique_ptr<archive, decltype(&archive_read_free)> archive_{archive_read_new(),
                                                                  &archive_read_free};
  std::array<char, 65'536> part_;
  int opened_ = ARCHIVE_FATAL;
  std::size_t bytes_ = 0;  // of the file, so far
  bool ended_ = false;     // more was asked for than there is
};

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
  explicit ArchiveReader(Archive& from) : from_(from) {}

  KeptFiles read() {
    KeptFiles files;
    std::size_t entries = 0;
    for (archive_entry* entry = nullptr; from_.next(&entry);) {
      if (++entries > most_entries) from_.refuse("it holds more entries than any machine");
      const char* const name = archive_entry_pathname(entry);
      std::string path = below_root(name == nullptr ? "" : name);
      while (path.ends_with('/')) path.pop_back();
      if (!path.empty()) add(files, *entry, path);
    }
    return files;
  }

 private:
  void add(KeptFiles& files, archive_entry& entry, const std::string& path) {
    if (const char* const target = archive_entry_symlink(&entry)) {
      files.add_link(path, target);
    } else if (archive_entry_filetype(&entry) == AE_IFDIR) {
      files.add_folder(path);
    } else if (archive_entry_filetype(&entry) == AE_IFREG) {
      std::string text;
      std::array<char, 4096> part;
      while (const std::size_t got = from_.read(part)) {
        bytes_ += got;
        if (bytes_ > most_bytes) from_.refuse("it holds more bytes than any machine");
        text.append(part.data(), got);
      }
      files.add_text(path, std::move(text));
    }
  }

  Archive& from_;
  std::size_t bytes_ = 0;
};

}  // namespace

std::optional<Reading> read_archive(const std::string& path) {
  Archive from(path);
  if (!from.is_one()) return std::nullopt;
  const KeptFiles files = ArchiveReader(from).read();
  if (!files.place("sys") && from.has_end()) refuse_empty(path);
  if (!files.place("sys")) from.refuse_as_cut();
  Reading reading = detect_from(files);
  if (!from.has_end())
    reading.diagnostics.push_back(
        {0, "",
         fmt::format("the archive has no mark at its end: it may be cut off after byte {}",
                     from.bytes()),
         0, Severity::warning});
  return reading;
}

}  // namespace khoro::tool
