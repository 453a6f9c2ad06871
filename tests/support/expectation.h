// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/settings.h"
#include "planner/rule.h"
#include "support/case.h"
#include "support/job.h"
#include "support/oracle.h"

namespace khoro::test {

/// The plans that the library makes for cases, and their order signatures. Thread-safe.
class PlanBook {
 public:
  struct Entry {
    Plan plan;
    std::shared_ptr<const Signatures> signatures;
  };

  /// `settings` are those of every communicator, but for the algorithm.
  explicit PlanBook(const Settings& settings) : settings_(settings) {}

  std::size_t slot_bytes() const {
    const auto bytes = static_cast<std::size_t>(settings_.slot_bytes);
    return medium() == Medium::sockets ? 3 * bytes : bytes;
  }

  /// The algorithm that runs: the one that is forced, where it is one for this collective.
  const Algorithm& algorithm(const Case& what) const {
    const Collective collective = what.collective();
    if (what.forced && what.forced->collective == collective.kind) return *what.forced;
    const std::size_t bytes = known_elements(what) * what.element();
    return *choose(collective, bytes, Topology::one_machine(what.ranks), slots(), medium())
                .algorithm;
  }

  /// Throws `Error` where the algorithm has no plan for the case. The entry lives as long as this.
  const Entry& find(const Case& what) {
    const Algorithm& chosen = algorithm(what);
    const Collective collective = what.collective();
    const std::lock_guard lock(mutex_);
    Entry& entry = entries_[{&chosen, collective.hash()}];
    if (!entry.signatures) {
      Shape shape;
      shape.slots = slots();
      entry.plan = make_plan(chosen, collective, Topology::one_machine(what.ranks), shape);
      // What is promised of a fold in rank order is more than that ranks do as the plan says.
      entry.signatures = std::make_shared<Signatures>(
          collective.rank_order ? Signatures::in_rank_order(entry.plan) : Signatures(entry.plan));
    }
    return entry;
  }

 private:
  Medium medium() const { return settings_.transport == "tcp" ? Medium::sockets : Medium::memory; }

  /// Those of the whole vector that all ranks know of.
  static std::size_t known_elements(const Case& what) {
    if (!what.unequal) return what.count * static_cast<std::size_t>(what.collective().blocks());
    const Blocks blocks = what.blocks(0);
    if (blocks.local) return 0;
    std::size_t elements = 0;
    for (const Block& block : what.collective().reduces() ? blocks.input : blocks.output)
      elements += block.count;
    return elements;
  }
  int slots() const { return static_cast<int>(settings_.slots); }

  Settings settings_;
  std::mutex mutex_;
  std::map<std::pair<const Algorithm*, std::uint64_t>, Entry> entries_;
};

/// Elements of every type over which rounding, overflow, NaN and zeros matter. What a rank gives is
/// cut from them, which costs a copy.
class ElementPools {
 public:
  ElementPools() {
    std::mt19937_64 random(1);
    for (const DtypeRow& row : dtypes()) {
      std::vector<std::byte>& pool = pools_[row.dtype];
      pool.resize(elements * row.bytes);
      fill_elements(pool.data(), elements, row.dtype, random);
    }
  }

  /// The input of a rank.
  std::vector<std::byte> cut(const Case& what, int rank) const {
    std::size_t last = 0;
    for (const Block& block : what.blocks(rank).input) last = std::max(last, block.end());
    std::vector<std::byte> input(last * what.element());
    const std::vector<std::byte>& pool = pools_.at(what.dtype);
    std::size_t from = mix(combine(what.seed, static_cast<std::uint64_t>(rank))) % elements;
    from *= what.element();
    for (std::size_t done = 0; done < input.size(); from = 0) {
      const std::size_t part = std::min(input.size() - done, pool.size() - from);
      std::copy_n(pool.begin() + static_cast<std::ptrdiff_t>(from), part,
                  input.begin() + static_cast<std::ptrdiff_t>(done));
      done += part;
    }
    return input;
  }

 private:
  /// A prime: no block, tile or chunk has its period.
  static constexpr std::size_t elements = 8191;
  std::map<Dtype, std::vector<std::byte>> pools_;
};

/// What must come of one case. The ranks of a process share it, and evaluate what they all get
/// once. Thread-safe.
class Expectation {
 public:
  Expectation(const Case& what, PlanBook& book, const ElementPools& pools) : case_(what) {
    for (int rank = 0; rank < what.ranks; ++rank) {
      inputs_.push_back(pools.cut(what, rank));
      blocks_.push_back(what.blocks(rank));
    }
    if (!what.kind || what.kind == CollectiveKind::barrier || what.count == 0) return;
    const PlanBook::Entry& entry = book.find(what);
    for (const Blocks& blocks : blocks_)
      grids_.push_back(grid_of(entry.plan, what.arithmetic(), what.count, book.slot_bytes(),
                               what.unequal ? &blocks : nullptr));
    std::vector<Scalar> factors;
    for (int rank = 0; rank < what.ranks; ++rank) factors.push_back(what.factor(rank));
    oracle_.emplace(entry.plan, entry.signatures, what.arithmetic(), grids_, inputs_,
                    std::move(factors));
  }

  std::span<const std::byte> input(int rank) const { return inputs_[std::size_t(rank)]; }

  bool right(int rank, const std::byte* output) {
    if (!case_.kind) {
      const std::span<const std::byte> sent = input((rank + case_.ranks - 1) % case_.ranks);
      return std::equal(sent.begin(), sent.end(), output);
    }
    const std::lock_guard lock(mutex_);
    return !oracle_ || oracle_->matches(rank, output);
  }
  /// The same for the outputs of all ranks, one tile at a time: for more elements than their
  /// expected values fit in memory. Precondition: a collective of equal blocks.
  bool all_right(std::span<const std::byte* const> outputs) {
    for (std::size_t tile = 0; tile < grids_[0].tiles(); ++tile) {
      for (std::size_t rank = 0; rank < outputs.size(); ++rank)
        if (!oracle_->matches(static_cast<int>(rank), tile, outputs[rank])) return false;
      oracle_->forget();
    }
    return true;
  }

 private:
  Case case_;
  std::vector<std::vector<std::byte>> inputs_;
  std::vector<Blocks> blocks_;  // by rank, as the grids are
  std::vector<Grid> grids_;
  std::mutex mutex_;
  std::optional<Oracle> oracle_;
};

}  // namespace khoro::test
