// SPDX-License-Identifier: Apache-2.0
#include "topo.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "capture.h"
#include "commands.h"
#include "input.h"
#include "topology/detect/detect.h"
#include "topology/formats/read.h"

namespace khoro::tool {
namespace {

Reading read_file(const std::string& file) {
  std::error_code failed;
  const auto type = std::filesystem::status(file, failed).type();
  if (type == std::filesystem::file_type::not_found)
    throw Error(Code::invalid_argument,
                fmt::format("{}: No such file or directory", printable(file)));
  if (type != std::filesystem::file_type::regular && type != std::filesystem::file_type::directory)
    throw Error(Code::invalid_argument,
                fmt::format("{}: neither a file nor a folder", printable(file)));
  if (std::optional<Reading> capture = read_capture(file)) return std::move(*capture);
  const std::optional<std::string> text = read_input(file, most_topology_bytes);
  if (!text)
    throw Error(Code::invalid_argument, fmt::format("{}: {}", printable(file), words_of_errno()));
  return read_topology(*text);
}

/// What was read, repaired, with all that was said of it.
Judged judge(Reading reading) {
  Judged judged{reading.topology.has_value(), {}, std::move(reading.diagnostics)};
  if (!judged.readable) return judged;
  Normalised normalised = normalise(std::move(*reading.topology));
  judged.topology = std::move(normalised.topology);
  judged.diagnostics.insert(judged.diagnostics.end(), normalised.diagnostics.begin(),
                            normalised.diagnostics.end());
  return judged;
}

std::string_view word_of(Severity severity) {
  static constexpr std::array<std::string_view, 3> words = {"note", "warning", "error"};
  return words[static_cast<std::size_t>(severity)];
}

}  // namespace

void add_topo(CLI::App& program, int& status) {
  CLI::App* topo = program.add_subcommand("topo", "Show machines: their links, paths and limits");
  topo->require_subcommand(1);
  add_topo_show(*topo);
  add_topo_matrix(*topo);
  add_topo_plan(*topo);
  add_topo_explain(*topo);
  add_topo_diff(*topo, status);
  add_topo_lint(*topo, status);
  add_topo_export(*topo);
}

void add_file(CLI::App& command, std::string& file) {
  command.add_option("--file", file, "a file that describes a machine; default: this machine")
      ->type_name("FILE");
}

Judged judge_file(const std::string& file) { return judge(read_file(file)); }

Normalised load_machine(const std::string& file) {
  Judged judged = judge(file.empty() ? detect_machine() : read_file(file));
  if (judged.readable) return {std::move(judged.topology), std::move(judged.diagnostics)};
  std::string errors;
  for (const Diagnostic& diagnostic : judged.diagnostics)
    errors += fmt::format("\n  {}:{}", printable(file), line_of(diagnostic));
  throw Error(Code::invalid_argument,
              fmt::format("{} describes no machine:{}", printable(file), errors));
}

std::string line_of(const Diagnostic& diagnostic) {
  std::string line;
  if (diagnostic.line > 0) line += fmt::format("{}:", diagnostic.line);
  if (diagnostic.column > 0) line += fmt::format("{}:", diagnostic.column);
  if (!line.empty()) line += ' ';
  if (!diagnostic.place.empty()) line += printable(diagnostic.place) + ": ";
  return line + fmt::format("{}: {}", word_of(diagnostic.severity), printable(diagnostic.message));
}

std::string gigabytes(double bytes_per_second) {
  std::string text = fmt::format("{:.1f}", bytes_per_second / 1e9);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

std::string printable(std::string_view text) {
  std::string clean;
  while (!text.empty()) {
    const auto first = static_cast<unsigned char>(text.front());
    const std::size_t length = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    const bool follows =
        length <= text.size() &&
        std::all_of(text.begin() + 1, text.begin() + static_cast<std::ptrdiff_t>(length),
                    [](char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; });
    const bool legal =
        first < 0x80 ? first >= ' ' && first != 0x7f : first >= 0xc2 && first <= 0xf4 && follows;
    if (legal)
      clean += text.substr(0, length);
    else
      clean += '?';
    text.remove_prefix(legal ? length : 1);
  }
  return clean;
}

int site_named(const Topology& topology, const std::string& name) {
  std::string lower = name;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) {
    return c < 128 ? static_cast<char>(std::tolower(c)) : 'x';
  });
  const int site = topology.find(lower);
  if (site >= 0) return site;
  std::vector<std::string_view> names;
  for (const Site& known : topology.sites) names.push_back(known.name);
  throw Error(Code::invalid_argument,
              fmt::format("no site \"{}\"; there are: {}", printable(name), fmt::join(names, " ")));
}

}  // namespace khoro::tool
