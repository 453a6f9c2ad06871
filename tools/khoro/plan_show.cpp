// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "base/error.h"
#include "machines.h"
#include "plan.h"
#include "plan/text.h"

namespace khoro::tool {
namespace {

struct Show {
  std::string collective;
  std::string algorithm;
  int ranks = 0;
  std::optional<int> rank;
  CallOptions call;
  Machines machines;

  void run() const {
    const Algorithm& chosen = algorithm_named(collective, algorithm);
    const Plan plan = make_plan(chosen, call.collective(chosen.collective, ranks),
                                machines.topology(ranks), Shape{});
    if (rank && *rank >= ranks)
      throw Error(Code::invalid_argument,
                  fmt::format("--rank {}: the plan has ranks 0..{}", *rank, ranks - 1));
    // One rank at a time: a whole plan of many ranks may be larger than memory.
    fmt::print("{}", print_head(plan));
    for (int r = rank.value_or(0); r < (rank ? *rank + 1 : ranks); ++r)
      fmt::print("{}", print_rank(plan, r));
  }
};

}  // namespace

void add_plan_show(CLI::App& plan) {
  CLI::App* command = plan.add_subcommand("show", "Print a plan, or one rank of it");
  auto show = std::make_shared<Show>();  // lives as long as the command
  command->add_option("collective", show->collective)->required()->type_name("COLLECTIVE");
  command->add_option("algorithm", show->algorithm)->required()->type_name("ALGORITHM");
  command->add_option("--ranks", show->ranks, "number of ranks")
      ->required()
      ->check(CLI::Range(1, 65536))
      ->type_name("N");
  command->add_option("--rank", show->rank, "print only this rank")
      ->check(CLI::NonNegativeNumber)
      ->type_name("RANK");
  show->call.add_to(*command);
  show->machines.add_to(*command);
  command->callback([show] { show->run(); });
}

}  // namespace khoro::tool
