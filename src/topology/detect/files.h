// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace khoro {

/// What a detector reads: the files of this machine, or those that were taken down of another.
/// Paths begin at the root, without a slash: "sys/class/net". Links are followed inside of it.
class Files {
 public:
  virtual ~Files() = default;
  /// Without the blanks at its end. Nothing if it cannot be read.
  virtual std::optional<std::string> text(std::string_view path) const = 0;
  /// What is in a folder, sorted; empty if it is none or cannot be read.
  virtual std::vector<std::string> names(std::string_view path) const = 0;
  /// The path with all links followed. Nothing if nothing is there.
  virtual std::optional<std::string> place(std::string_view path) const = 0;
};

/// A folder that holds `sys` and `proc`: "/", or one that was captured.
class FolderFiles : public Files {
 public:
  explicit FolderFiles(std::string root);
  std::optional<std::string> text(std::string_view path) const override;
  std::vector<std::string> names(std::string_view path) const override;
  std::optional<std::string> place(std::string_view path) const override;

 private:
  std::string root_;
};

/// The contents of an archive.
class KeptFiles : public Files {
 public:
  void add_text(const std::string& path, std::string text) { texts_[path] = std::move(text); }
  /// `target` is as the link has it, relative to the folder of the link or absolute.
  void add_link(const std::string& path, std::string target) { links_[path] = std::move(target); }
  void add_folder(const std::string& path) { texts_.try_emplace(path + "/"); }

  std::optional<std::string> text(std::string_view path) const override;
  std::vector<std::string> names(std::string_view path) const override;
  std::optional<std::string> place(std::string_view path) const override;

 private:
  bool is_there(const std::string& path) const;

  std::map<std::string, std::string> texts_;  // folders end with a slash
  std::map<std::string, std::string> links_;
};

}  // namespace khoro
