// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace khoro::tool {

/// Rows of text printed in columns, each as wide as its longest entry.
class Table {
 public:
  explicit Table(std::vector<std::string> head) { add(std::move(head)); }
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

/// How a subcommand prints: for people, or one JSON object with `version`.
enum class Format { text, json };

/// The option --format of a subcommand.
void add_format(CLI::App& command, Format& format);

}  // namespace khoro::tool
