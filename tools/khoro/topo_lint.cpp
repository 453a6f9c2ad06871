// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "commands.h"
#include "table.h"
#include "topo.h"

namespace khoro::tool {
namespace {

struct Options {
  std::vector<std::string> files;
  bool notes = false;
  Format format = Format::text;
};

/// What of it is printed: notes only if they are asked for.
std::vector<Diagnostic> shown(const Judged& judged, bool notes) {
  std::vector<Diagnostic> shown;
  std::copy_if(judged.diagnostics.begin(), judged.diagnostics.end(), std::back_inserter(shown),
               [notes](const Diagnostic& diagnostic) {
                 return notes || diagnostic.severity != Severity::note;
               });
  return shown;
}

bool is_clean(const std::vector<Diagnostic>& diagnostics) {
  return std::all_of(diagnostics.begin(), diagnostics.end(), [](const Diagnostic& diagnostic) {
    return diagnostic.severity == Severity::note;
  });
}

/// What cannot even be opened is judged, too: the files after it are as well.
Judged judge(const std::string& file) {
  try {
    return judge_file(file);
  } catch (const Error& error) {
    std::string_view words = error.what();
    if (const std::string shown = printable(file); words.starts_with(shown + ": "))
      words.remove_prefix(shown.size() + 2);
    return {false, {}, {{0, "", std::string(words), 0, Severity::error}}};
  }
}

void lint(const Options& options, int& status) {
  nlohmann::ordered_json all = {{"version", 1}, {"files", nlohmann::ordered_json::array()}};
  for (const std::string& file : options.files) {
    const Judged judged = judge(file);
    const std::vector<Diagnostic> diagnostics = shown(judged, options.notes);
    if (!is_clean(diagnostics)) status = found_something;
    nlohmann::ordered_json lines = nlohmann::ordered_json::array();
    for (const Diagnostic& diagnostic : diagnostics) {
      if (options.format == Format::text)
        fmt::print("{}:{}\n", printable(file), line_of(diagnostic));
      lines.push_back(line_of(diagnostic));
    }
    all["files"].push_back(
        {{"file", file}, {"readable", judged.readable}, {"diagnostics", std::move(lines)}});
  }
  if (options.format == Format::json)
    fmt::print("{}\n", all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace

void add_topo_lint(CLI::App& topo, int& status) {
  CLI::App* command =
      topo.add_subcommand("lint", "Say what is wrong with files that describe machines");
  auto options = std::make_shared<Options>();  // lives as long as the command
  command->add_option("files", options->files, "files in any dialect")->required();
  command->add_flag("--notes", options->notes, "print what was repaired without harm, too");
  add_format(*command, options->format);
  command->callback([options, &status] { lint(*options, status); });
}

}  // namespace khoro::tool
