// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "algorithms/algorithm.h"
#include "base/error.h"
#include "base/hash.h"
#include "plan/passes.h"

namespace khoro {

// Each is defined in the file that its name begins with.
extern const Algorithm one_shot_allreduce;
extern const Algorithm two_shot_allreduce;
extern const Algorithm recursive_doubling_allreduce;
extern const Algorithm halving_doubling_allreduce;
extern const Algorithm double_tree_allreduce;
extern const Algorithm ring_allreduce, ring_allgather, ring_reducescatter;
extern const Algorithm two_way_ring_allreduce, two_way_ring_allgather, two_way_ring_reducescatter;
extern const Algorithm binomial_broadcast, binomial_reduce, binomial_gather, binomial_scatter;
extern const Algorithm scatter_allgather_broadcast;
extern const Algorithm chain_broadcast, chain_reduce;
extern const Algorithm linear_gather, linear_scatter, linear_alltoall;
extern const Algorithm linear_reduce, linear_reducescatter;
extern const Algorithm pairwise_alltoall;
extern const Algorithm bruck_allgather, bruck_alltoall;
extern const Algorithm dissemination_barrier;
extern const Algorithm channels_allreduce, channels_allgather, channels_reducescatter;
extern const Algorithm two_level_allreduce, two_level_reduce, two_level_broadcast;
extern const Algorithm two_level_allgather, two_level_reducescatter;
extern const Algorithm two_level_gather, two_level_scatter;

namespace {

constexpr const Algorithm* rows[] = {
    &one_shot_allreduce,
    &two_shot_allreduce,
    &recursive_doubling_allreduce,
    &halving_doubling_allreduce,
    &double_tree_allreduce,
    &ring_allreduce,
    &two_way_ring_allreduce,
    &two_level_allreduce,
    &channels_allreduce,
    &binomial_broadcast,
    &scatter_allgather_broadcast,
    &chain_broadcast,
    &two_level_broadcast,
    &bruck_allgather,
    &ring_allgather,
    &two_way_ring_allgather,
    &two_level_allgather,
    &channels_allgather,
    &linear_reducescatter,
    &ring_reducescatter,
    &two_way_ring_reducescatter,
    &two_level_reducescatter,
    &channels_reducescatter,
    &dissemination_barrier,
    &linear_reduce,
    &binomial_reduce,
    &chain_reduce,
    &two_level_reduce,
    &linear_gather,
    &binomial_gather,
    &two_level_gather,
    &linear_scatter,
    &binomial_scatter,
    &two_level_scatter,
    &linear_alltoall,
    &pairwise_alltoall,
    &bruck_alltoall,
};

void check(const Algorithm& algorithm, const Collective& collective, const Topology& topology) {
  const auto refuse = [&](const std::string& why) {
    throw Error(Code::invalid_argument,
                fmt::format("plan {}.{}: {}", name(algorithm.collective), algorithm.name, why));
  };
  if (collective.kind != algorithm.collective)
    refuse(fmt::format("is no algorithm for {}", name(collective.kind)));
  if (collective.ranks < 1)
    refuse(fmt::format("{} ranks: there must be at least 1", collective.ranks));
  if (topology.ranks() != collective.ranks)
    refuse(
        fmt::format("{} ranks over a topology that places {}", collective.ranks, topology.ranks()));
  if (collective.has_root() && (collective.root < 0 || collective.root >= collective.ranks))
    refuse(fmt::format("root {}: must be 0..{}", collective.root, collective.ranks - 1));
}

}  // namespace

std::span<const Algorithm* const> algorithms() noexcept { return rows; }

const Algorithm* find_algorithm(CollectiveKind collective, std::string_view name) noexcept {
  for (const Algorithm* row : rows)
    if (row->collective == collective && row->name == name) return row;
  return nullptr;
}

Programs programs_of(const Algorithm& algorithm, const Collective& collective,
                     const Topology& topology, const Shape& shape) {
  if (algorithm.programs) return algorithm.programs(collective, topology, shape);
  return [program = algorithm.program, collective, topology, shape](int rank) {
    return program(collective, topology, shape, rank);
  };
}

Plan make_plan(const Algorithm& algorithm, const Collective& collective, const Topology& topology,
               const Shape& shape) {
  check(algorithm, collective, topology);
  Plan plan;
  plan.algorithm = algorithm.name;
  plan.collective = collective;
  plan.chunks = algorithm.chunks(collective, topology, shape);
  if (algorithm.widest) plan.widest_message = algorithm.widest(collective, topology, shape);
  if (algorithm.weights) plan.weights = algorithm.weights(collective, topology, shape);
  plan.lends_in_place = algorithm.lends_in_place;
  plan.program = [programs = programs_of(algorithm, collective, topology, shape),
                  premul = collective.premul](int rank) {
    return premul ? premultiplied(programs(rank)) : programs(rank);
  };
  return plan;
}

std::uint64_t plan_hash(const Algorithm& algorithm, const Collective& collective,
                        const Topology& topology, const Shape& shape) noexcept {
  std::uint64_t hash = combine(hash_text(algorithm.name), collective.hash());
  hash = combine(hash, static_cast<std::uint64_t>(algorithm.version));
  hash = combine(hash, topology.hash());
  hash = combine(hash, static_cast<std::uint64_t>(shape.lanes));
  return combine(hash, static_cast<std::uint64_t>(shape.slots));
}

}  // namespace khoro
