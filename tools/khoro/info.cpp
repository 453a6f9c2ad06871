// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/dtype.h"
#include "base/settings.h"
#include "commands.h"
#include "executor/lending.h"
#include "info_launcher.h"
#include "table.h"
#include "transport/registry.h"

namespace khoro::tool {
namespace {

template <class Rows>
std::vector<std::string> names_of(const Rows& rows) {
  std::vector<std::string> names;
  for (const auto& row : rows) names.emplace_back(row.name);
  return names;
}

std::string_view origin(const SettingValue& setting) {
  return setting.from_environment ? "environment" : "default";
}

void print_text() {
  fmt::print("khoro {}\n", KHORO_VERSION);
  fmt::print("transports  {}\n", fmt::join(names_of(transports()), " "));
  fmt::print("dtypes      {}\n", fmt::join(names_of(dtypes()), " "));
  fmt::print("reductions  {}\n\n", fmt::join(names_of(reductions()), " "));
  Table ways({"memory", "message", "call", "it is"});
  for (const LendingLine& line : lines_of(LendingRule{}))
    ways.add({line.memory, line.message, line.call, line.way});
  fmt::print("{}\n", ways.text());
  Table table({"setting", "value", "from", "scope", "legal"});
  for (const SettingValue& setting : settings_now())
    table.add({std::string(setting.row->name), setting.value.empty() ? "-" : setting.value,
               std::string(origin(setting)), std::string(to_string(setting.row->scope)),
               legal_words(*setting.row)});
  fmt::print("{}", table.text());
}

void print_json() {
  nlohmann::ordered_json all = {{"version", 1},
                                {"khoro", KHORO_VERSION},
                                {"transports", names_of(transports())},
                                {"dtypes", names_of(dtypes())},
                                {"reductions", names_of(reductions())}};
  for (const LendingLine& line : lines_of(LendingRule{}))
    all["messages"].push_back({{"memory", line.memory},
                               {"message", line.message},
                               {"call", line.call},
                               {"way", line.way}});
  for (const SettingValue& setting : settings_now())
    all["settings"].push_back({{"name", setting.row->name},
                               {"value", setting.value},
                               {"from", origin(setting)},
                               {"default", setting.row->default_value},
                               {"type", to_string(setting.row->type)},
                               {"scope", to_string(setting.row->scope)},
                               {"legal", legal_words(*setting.row)},
                               {"help", setting.row->help}});
  fmt::print("{}\n", all.dump(2));
}

}  // namespace

void add_info(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("info", "Print version, settings, transports and element types");
  auto format = std::make_shared<Format>(Format::text);  // lives as long as the command
  add_format(*command, *format);
  auto launcher = std::make_shared<bool>(false);
  command->add_flag("--launcher", *launcher,
                    "print which rank this process is instead, which launcher says so, and why");
  command->callback([format, launcher] {
    if (*launcher) return print_launchers(*format);
    *format == Format::json ? print_json() : print_text();
  });
}

}  // namespace khoro::tool
