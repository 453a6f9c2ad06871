// SPDX-License-Identifier: Apache-2.0
#include "topology/detect/files.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>
#include <system_error>
#include <utility>

namespace khoro {
namespace {

/// Files of sysfs are short; a capture could hold anything.
constexpr std::size_t most_text = std::size_t{1} << 20;
constexpr int most_links = 40;  // on the way to one file

std::string without_end(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ' || text.back() == '\0'))
    text.pop_back();
  return text;
}

std::vector<std::string> parts_of(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    if (end > 0) parts.emplace_back(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return parts;
}

}  // namespace

FolderFiles::FolderFiles(std::string root) : root_(std::move(root)) {
  std::error_code failed;
  const auto real = std::filesystem::canonical(root_, failed);
  if (!failed) root_ = real.string();
  if (!root_.ends_with('/')) root_ += '/';
}

std::optional<std::string> FolderFiles::text(std::string_view path) const {
  std::error_code failed;
  // Anything else could wait for a writer for ever.
  if (!place(path) || !std::filesystem::is_regular_file(root_ + std::string(path), failed))
    return std::nullopt;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(
      std::fopen((root_ + std::string(path)).c_str(), "re"), &std::fclose);
  if (!file) return std::nullopt;
  std::string text;
  std::array<char, 4096> part;
  while (text.size() < most_text) {
    const std::size_t got = std::fread(part.data(), 1, part.size(), file.get());
    if (got == 0) break;
    text.append(part.data(), got);
  }
  if (std::ferror(file.get())) return std::nullopt;
  return without_end(std::move(text));
}

std::vector<std::string> FolderFiles::names(std::string_view path) const {
  std::vector<std::string> names;
  if (!place(path)) return names;
  std::error_code failed;
  std::filesystem::directory_iterator entry(root_ + std::string(path), failed);
  for (; !failed && entry != std::filesystem::directory_iterator(); entry.increment(failed))
    names.push_back(entry->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<std::string> FolderFiles::place(std::string_view path) const {
  std::error_code failed;
  const std::string real = std::filesystem::canonical(root_ + std::string(path), failed).string();
  if (failed || !real.starts_with(root_)) return std::nullopt;
  return real.substr(root_.size());
}

bool KeptFiles::is_there(const std::string& path) const {
  const auto holds = [&path](const auto& map) {
    const auto below = map.lower_bound(path + "/");
    return map.contains(path) || (below != map.end() && below->first.starts_with(path + "/"));
  };
  return holds(texts_) || holds(links_);
}

std::optional<std::string> KeptFiles::place(std::string_view path) const {
  std::vector<std::string> ahead = parts_of(path), behind;
  std::reverse(ahead.begin(), ahead.end());
  const auto here = [&behind] {
    std::string text;
    for (const std::string& part : behind) text += (text.empty() ? "" : "/") + part;
    return text;
  };
  for (int links = 0; !ahead.empty();) {
    const std::string part = std::move(ahead.back());
    ahead.pop_back();
    if (part == ".") continue;
    if (part == "..") {
      if (!behind.empty()) behind.pop_back();
      continue;
    }
    behind.push_back(part);
    const auto link = links_.find(here());
    if (link == links_.end()) continue;
    if (++links > most_links) return std::nullopt;
    behind.pop_back();
    if (link->second.starts_with('/')) behind.clear();
    const std::vector<std::string> target = parts_of(link->second);
    ahead.insert(ahead.end(), target.rbegin(), target.rend());
  }
  std::string found = here();
  return is_there(found) ? std::optional(std::move(found)) : std::nullopt;
}

std::optional<std::string> KeptFiles::text(std::string_view path) const {
  const auto real = place(path);
  if (!real) return std::nullopt;
  const auto found = texts_.find(*real);
  return found == texts_.end() ? std::nullopt : std::optional(without_end(found->second));
}

std::vector<std::string> KeptFiles::names(std::string_view path) const {
  const auto real = place(path);
  if (!real) return {};
  const std::string before = *real + "/";
  std::set<std::string> names;
  const auto look = [&](const auto& map) {
    for (auto entry = map.lower_bound(before);
         entry != map.end() && entry->first.starts_with(before); ++entry)
      if (const auto parts = parts_of(std::string_view(entry->first).substr(before.size()));
          !parts.empty())
        names.insert(parts.front());
  };
  look(texts_);
  look(links_);
  return {names.begin(), names.end()};
}

}  // namespace khoro
