// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "topology/normalise.h"

namespace khoro::tool {

// The parts of `khoro topo`; see commands.h.
void add_topo_show(CLI::App& topo);
void add_topo_matrix(CLI::App& topo);
void add_topo_plan(CLI::App& topo);
void add_topo_explain(CLI::App& topo);
void add_topo_diff(CLI::App& topo, int& status);
void add_topo_lint(CLI::App& topo, int& status);
void add_topo_export(CLI::App& topo);

/// The option --file of a subcommand: the machine that it works on.
void add_file(CLI::App& command, std::string& file);

/// The option --gpus of a subcommand, and the sites that it names: all GPUs if it names none.
/// Throws invalid_argument for a number that no GPU has.
void add_gpus(CLI::App& command, std::vector<int>& gpus);
std::vector<int> gpus_numbered(const Topology& topology, const std::vector<int>& numbers);

/// The machine that a file describes, in any dialect; with an empty name, this machine. Throws
/// invalid_argument, with every error of the file, if it cannot be read.
Normalised load_machine(const std::string& file);

/// What could be read of a file, and all that was said of it. Throws where there is no file.
struct Judged {
  bool readable = false;
  Topology topology;
  std::vector<Diagnostic> diagnostics;
};
Judged judge_file(const std::string& file);

/// "12:5: gpu 3 at 0000:0a:00.0: warning: ...", without what is not known.
std::string line_of(const Diagnostic& diagnostic);

/// The object that `khoro topo export --format json` prints.
std::string machine_json(const Topology& topology);

/// "12", "20.6": GB/s of 10^9 bytes.
std::string gigabytes(double bytes_per_second);

/// Text of files for people: what is no character of UTF-8, or controls a terminal, becomes '?'.
std::string printable(std::string_view text);

/// The site of that name, in any case. Throws invalid_argument with the names that there are.
int site_named(const Topology& topology, const std::string& name);

}  // namespace khoro::tool
