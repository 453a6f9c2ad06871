// SPDX-License-Identifier: Apache-2.0
#include "table.h"

#include <algorithm>

namespace khoro::tool {

std::string Table::text() const {
  std::vector<std::size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      text += row[i];
      if (i + 1 < row.size()) text.append(widths[i] - row[i].size() + 2, ' ');
    }
    text.erase(text.find_last_not_of(' ') + 1);  // what pads a row that ends early
    text += '\n';
  }
  return text;
}

void add_format(CLI::App& command, Format& format) {
  const auto choose = [&format](const std::string& name) {
    if (name != "text" && name != "json")
      throw CLI::ValidationError("--format", "'" + name + "' is neither text nor json");
    format = name == "json" ? Format::json : Format::text;
  };
  command.add_option_function<std::string>("--format", choose, "text or json")->type_name("FORMAT");
}

}  // namespace khoro::tool
