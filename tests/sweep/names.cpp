// SPDX-License-Identifier: Apache-2.0
#include "sweep/names.h"

namespace khoro::test {
namespace {

std::vector<CollectiveName> find_collectives() {
  std::vector<CollectiveName> names;
  for (bool unequal : {false, true})
    for (const Algorithm* row : algorithms()) {
      const std::string each = std::string(name(row->collective)) + (unequal ? "v" : "");
      const bool has_blocks = Collective{row->collective, 2}.blocks() == 2;
      if (row->collective != CollectiveKind::barrier && (has_blocks || !unequal) &&
          row_named(names, each) == nullptr)
        names.push_back({each, row->collective, unequal, false});
    }
  names.push_back({"sendrecv", std::nullopt, false, false});
  names.push_back({"sendrecv-tag", std::nullopt, false, true});
  return names;
}

std::vector<ReductionName> find_reductions() {
  std::vector<ReductionName> names;
  for (const ReductionRow& row : reductions())
    names.push_back({row.name, row.reduction, false, true});
  names.push_back({"premul-host", Reduction::premul, false, true});
  names.push_back({"premul-device", Reduction::premul, true, true});
  names.push_back({"user", Reduction::user, false, true});
  names.push_back({"user-ordered", Reduction::user, false, false});
  return names;
}

std::vector<AlgorithmName> find_algorithms() {
  std::vector<AlgorithmName> names{{"default", nullptr}};
  for (const Algorithm* row : algorithms())
    if (row->collective != CollectiveKind::barrier)
      names.push_back({std::string(name(row->collective)) + ":" + std::string(row->name), row});
  return names;
}

}  // namespace

const std::vector<CollectiveName>& collectives() {
  static const std::vector<CollectiveName> names = find_collectives();
  return names;
}

const std::vector<ReductionName>& all_reductions() {
  static const std::vector<ReductionName> names = find_reductions();
  return names;
}

const std::vector<AlgorithmName>& forced_algorithms() {
  static const std::vector<AlgorithmName> names = find_algorithms();
  return names;
}

}  // namespace khoro::test
