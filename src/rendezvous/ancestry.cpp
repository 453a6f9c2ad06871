// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/descriptor.h"
#include "base/process_stat.h"
#include "rendezvous/launcher.h"

namespace khoro {
namespace {

constexpr std::size_t most_ancestors = 64;
/// Of an environment; the system takes no larger ones by default.
constexpr std::size_t most_bytes = 8 << 20;

/// None if it cannot be read.
std::optional<std::string> contents(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  std::string text;
  char part[16'384];
  for (;;) {
    const ssize_t size = ::read(file.number(), part, sizeof part);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 || text.size() > most_bytes) return std::nullopt;
    if (size == 0) return text;
    text.append(part, static_cast<std::size_t>(size));
  }
}

std::vector<std::string_view> all_names() {
  std::vector<std::string_view> names;
  for (const LauncherRow& row : launcher_rows())
    for (const std::string_view name : row.variables()) names.push_back(name);
  return names;
}

/// The variables of launchers in what proc(5) calls an environ.
LauncherVariables variables_in(std::string_view environment) {
  const std::vector<std::string_view> names = all_names();
  LauncherVariables variables;
  while (!environment.empty()) {
    const std::string_view entry = environment.substr(0, environment.find('\0'));
    environment.remove_prefix(std::min(entry.size() + 1, environment.size()));
    const std::string_view name = entry.substr(0, entry.find('='));
    if (name.size() < entry.size() && std::find(names.begin(), names.end(), name) != names.end())
      variables.emplace(name, entry.substr(name.size() + 1));  // the first of a name counts
  }
  return variables;
}

Ancestor ancestor_of(pid_t process, const ProcessStat& stat) {
  Ancestor ancestor;
  ancestor.process = process;
  ancestor.started = stat.started;
  const std::string folder = fmt::format("/proc/{}/", process);
  ancestor.program = contents(folder + "comm").value_or("");
  if (ancestor.program.ends_with('\n')) ancestor.program.pop_back();
  if (const auto environment = contents(folder + "environ"))
    ancestor.variables = variables_in(*environment);
  return ancestor;
}

}  // namespace

Ancestry Ancestry::of_this_process() {
  Ancestry ancestry;
  for (const std::string_view name : all_names())
    if (auto value = environment_value(name)) ancestry.variables.emplace(name, std::move(*value));
  pid_t process = ::getpid();
  while (process > 0 && ancestry.line.size() < most_ancestors) {
    const auto stat = stat_of(process);
    if (!stat) break;
    ancestry.line.push_back(ancestor_of(process, *stat));
    process = stat->parent;
  }
  return ancestry;
}

}  // namespace khoro
