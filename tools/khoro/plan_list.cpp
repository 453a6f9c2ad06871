// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "plan.h"
#include "planner/rule.h"
#include "table.h"

namespace khoro::tool {
namespace {

std::string bytes_text(std::size_t bytes) {
  constexpr std::size_t kib = 1024;
  if (bytes == RuleRow::any_bytes) return "any";
  if (bytes % (kib * kib) == 0) return fmt::format("<= {} MiB", bytes / kib / kib);
  if (bytes % kib == 0) return fmt::format("<= {} KiB", bytes / kib);
  return fmt::format("<= {}", bytes);
}

/// What an algorithm can do that not all can, and what it cannot; empty if there is nothing to say.
std::string notes(const Algorithm& algorithm) {
  std::vector<std::string_view> notes;
  if (algorithm.rank_order) notes.push_back("folds in rank order");
  if (algorithm.equal_blocks) notes.push_back("equal blocks only");
  if (algorithm.by_machine) notes.push_back("by machine");
  return fmt::format("{}", fmt::join(notes, ", "));
}

void print_text() {
  Table list({"collective", "algorithm", "least slots", "rounds", "bytes sent per rank", "notes"});
  for (const Algorithm* row : algorithms())
    list.add({std::string(name(row->collective)), std::string(row->name),
              std::to_string(row->least_slots), std::string(row->rounds), std::string(row->sent),
              notes(*row)});
  Table rule({"collective", "ranks", "bytes", "over", "algorithm", "why"});
  for (const RuleRow& row : default_rule())
    rule.add({std::string(name(row.collective)),
              row.most_ranks == RuleRow::any_ranks ? "any" : fmt::format("<= {}", row.most_ranks),
              bytes_text(row.most_bytes), row.over_sockets ? "sockets" : "any",
              std::string(row.algorithm), std::string(row.why)});
  fmt::print("Algorithms (P ranks, S bytes of the whole vector; N machines of R to G ranks)\n{}\n",
             list.text());
  fmt::print("Default rule (the first line that fits decides)\n{}", rule.text());
}

void print_json() {
  nlohmann::ordered_json all = {{"version", 1}};
  for (const Algorithm* row : algorithms())
    all["algorithms"].push_back({{"collective", name(row->collective)},
                                 {"algorithm", row->name},
                                 {"algorithm_version", row->version},
                                 {"least_slots", row->least_slots},
                                 {"rounds", row->rounds},
                                 {"sent", row->sent},
                                 {"rank_order", row->rank_order},
                                 {"equal_blocks", row->equal_blocks},
                                 {"by_machine", row->by_machine}});
  for (const RuleRow& row : default_rule()) {
    nlohmann::ordered_json line = {{"collective", name(row.collective)}};
    if (row.most_ranks != RuleRow::any_ranks) line["most_ranks"] = row.most_ranks;
    if (row.most_bytes != RuleRow::any_bytes) line["most_bytes"] = row.most_bytes;
    if (row.over_sockets) line["over"] = "sockets";
    line["algorithm"] = row.algorithm;
    line["why"] = row.why;
    all["default_rule"].push_back(std::move(line));
  }
  fmt::print("{}\n", all.dump(2));
}

}  // namespace

void add_plan_list(CLI::App& plan) {
  CLI::App* command = plan.add_subcommand("list", "Print the algorithms and the default rule");
  auto format = std::make_shared<Format>(Format::text);  // lives as long as the command
  add_format(*command, *format);
  command->callback([format] { *format == Format::json ? print_json() : print_text(); });
}

}  // namespace khoro::tool
