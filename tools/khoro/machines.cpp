// SPDX-License-Identifier: Apache-2.0
#include "machines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "base/error.h"
#include "topo.h"

namespace khoro::tool {
namespace {

/// Machines of `size` ranks, the last of what is left.
std::vector<int> sizes_of(int ranks, int size) {
  std::vector<int> sizes(static_cast<std::size_t>(ranks / size), size);
  if (ranks % size > 0) sizes.push_back(ranks % size);
  return sizes;
}

/// Machines of 1, 2, 3 ... ranks, the last of what is left.
std::vector<int> growing_sizes(int ranks) {
  std::vector<int> sizes;
  for (int size = 1; ranks > 0; ++size) {
    sizes.push_back(std::min(size, ranks));
    ranks -= sizes.back();
  }
  return sizes;
}

}  // namespace

void Machines::add_to(CLI::App& command) {
  CLI::Option* groups =
      command
          .add_option(
              "--groups", sizes,
              "the ranks of each machine, which follow one another; one machine if left out")
          ->check(CLI::PositiveNumber)
          ->delimiter(',')
          ->expected(1, -1)
          ->type_name("N");
  command.add_flag("--dealt", dealt, "deal the ranks out to the machines in turn instead")
      ->needs(groups);
  command
      .add_option("--topology", file,
                  "a file that describes a machine; the ranks are on its GPUs, in order")
      ->excludes(groups)
      ->type_name("FILE");
}

void Machines::refuse(const std::string& why) const {
  if (!sizes.empty()) throw Error(Code::invalid_argument, fmt::format("--groups: {}", why));
  if (!file.empty()) throw Error(Code::invalid_argument, fmt::format("--topology: {}", why));
}

Topology Machines::topology(int ranks) const {
  if (!file.empty()) {
    Topology topology = load_machine(file).topology;
    if (topology.ranks() != ranks)
      throw Error(Code::invalid_argument, fmt::format("--topology {}: {} GPUs, but --ranks {}",
                                                      file, topology.ranks(), ranks));
    return topology;
  }
  if (sizes.empty()) return Topology::one_machine(ranks);
  std::vector<int> left = sizes;
  const long long all = std::accumulate(left.begin(), left.end(), 0LL);
  if (all != ranks)
    throw Error(Code::invalid_argument, fmt::format("--groups {}: {} ranks, but --ranks {}",
                                                    fmt::join(sizes, ","), all, ranks));
  std::vector<int> machine_of_rank;
  std::size_t machine = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    while (left[machine] == 0) machine = (machine + 1) % left.size();
    --left[machine];
    machine_of_rank.push_back(static_cast<int>(machine));
    if (dealt) machine = (machine + 1) % left.size();
  }
  return Topology::machines(machine_of_rank);
}

std::string Machines::text() const {
  if (!file.empty()) return " on " + file;
  if (sizes.size() < 2) return {};
  return fmt::format(" groups {}{}", fmt::join(sizes, ","), dealt ? " dealt" : "");
}

std::vector<Machines> machines_for(const Algorithm& algorithm, int ranks) {
  std::vector<Machines> all = {{}};
  if (!algorithm.by_machine) return all;
  const auto add = [&](std::vector<int> sizes, bool dealt) {
    if (sizes.size() < 2) return;
    const Machines machines{std::move(sizes), dealt, {}};
    if (std::find(all.begin(), all.end(), machines) == all.end()) all.push_back(machines);
  };
  for (bool dealt : {false, true}) {
    add(sizes_of(ranks, (ranks + 1) / 2), dealt);
    add(sizes_of(ranks, 8), dealt);
    add(growing_sizes(ranks), dealt);
  }
  add(sizes_of(ranks, 1), false);
  if (ranks > 2) add({1, ranks - 1}, false);
  return all;
}

}  // namespace khoro::tool
