// SPDX-License-Identifier: Apache-2.0
#include "plan.h"

#include <fmt/format.h>

#include "base/error.h"
#include "commands.h"

namespace khoro::tool {

void add_plan(CLI::App& program, int& status) {
  CLI::App* plan = program.add_subcommand("plan", "List, print and prove plans");
  plan->require_subcommand(1);
  add_plan_list(*plan);
  add_plan_show(*plan);
  add_plan_verify(*plan, status);
}

const Algorithm& algorithm_named(const std::string& collective, const std::string& algorithm) {
  const auto kind = collective_named(collective);
  if (kind) {
    const Algorithm* found = find_algorithm(*kind, algorithm);
    if (found != nullptr) return *found;
  }
  std::string known;
  for (const Algorithm* row : algorithms())
    known += fmt::format("{}{} {}", known.empty() ? "" : ", ", name(row->collective), row->name);
  throw Error(Code::invalid_argument,
              fmt::format("no algorithm \"{} {}\"; there are: {}", collective, algorithm, known));
}

void CallOptions::add_to(CLI::App& command) {
  command.add_option("--root", root, "the root, where the collective has one")->type_name("RANK");
  command.add_flag("--avg", average, "reduce by average instead of a plain sum");
}

void CallOptions::refuse(std::string_view why) const {
  if (root || average)
    throw Error(Code::invalid_argument, fmt::format("{}: {}", root ? "--root" : "--avg", why));
}

Collective CallOptions::collective(CollectiveKind kind, int ranks) const {
  const Collective collective{kind, ranks, root.value_or(0), average};
  if (average && !collective.reduces())
    throw Error(Code::invalid_argument, fmt::format("--avg: {} reduces nothing", name(kind)));
  if (collective.root != 0 && !collective.has_root())
    throw Error(Code::invalid_argument, fmt::format("--root: {} has no root", name(kind)));
  return collective;
}

}  // namespace khoro::tool
