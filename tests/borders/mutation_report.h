// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "algorithms/algorithm.h"
#include "base/hash.h"
#include "plan/verify.h"
#include "support/groupings.h"
#include "support/mutants.h"
#include "support/trial.h"

namespace khoro::test {

/// Judges the mutants of plans by verify(), in place and not, by copy and by reference, runs each
/// of them so, and compares what was foretold with what is seen.
class MutationReport {
 public:
  struct Count {
    int rejected = 0;
    int shown = 0;
  };

  /// `where` tells plans of one algorithm and as many ranks apart.
  void add(const Plan& plan, int least_slots, const std::string& where) {
    title_ = fmt::format("{} ranks {}{}", plan.name(), plan.collective.ranks, where);
    for (const Mutant& mutant : mutants_of(plan, least_slots)) add(plan, mutant);
  }

  int mutants() const { return mutants_; }
  int runs() const { return runs_; }
  /// As good as their plans, by verify() and in every run.
  const std::vector<std::string>& equivalent() const { return equivalent_; }
  /// The same as a text, one a line.
  std::string equivalent_text() const { return fmt::format("{}\n", fmt::join(equivalent_, "\n")); }
  /// Where the two do not agree, in words.
  const std::vector<std::string>& differences() const { return differences_; }

  /// The report as a table.
  std::string text() const {
    std::string text = "| plan | mutation | fault | rejected | shown by execution |\n";
    text += "|---|---|---|---:|---:|\n";
    Count sum;
    for (const auto& [key, count] : counts_) {
      const auto& [plan, kind, fault] = key;
      text += fmt::format("| {} | {} | {} | {} | {} |\n", plan, kind, fault, count.rejected,
                          count.shown);
      sum.rejected += count.rejected;
      sum.shown += count.shown;
    }
    text += fmt::format("| all | all | all | {} | {} |\n\n", sum.rejected, sum.shown);
    text += fmt::format("{} mutants, {} equivalent ({:.1f} %), {} runs, {} differences\n", mutants_,
                        equivalent_.size(), 100.0 * double(equivalent_.size()) / mutants_, runs_,
                        differences_.size());
    return text;
  }

 private:
  struct Mode {
    bool in_place = false;
    bool references = false;
  };
  static constexpr Mode modes[] = {{false, false}, {true, false}, {false, true}, {true, true}};
  static constexpr int seeds_of_the_equivalent = 20;

  /// The fewest tiles of which verify() rejects the plan, with its verdict.
  static std::pair<Verdict, int> judge(const Mutant& mutant, const Mode& mode) {
    for (int tiles = 1;; ++tiles) {
      Verdict verdict = verify(mutant.plan, {.slots = mutant.slots,
                                             .in_place = mode.in_place,
                                             .references = mode.references,
                                             .tiles = tiles});
      if (verdict.found || tiles == 2) return {std::move(verdict), tiles};
    }
  }

  void add(const Plan& plan, const Mutant& mutant) {
    ++mutants_;
    Count* count = nullptr;
    bool shown = true;
    bool refused = false;  // not in place
    for (const Mode& mode : modes) {
      const auto [verdict, tiles] = judge(mutant, mode);
      const bool refuses = verdict.found && verdict.found->outcome.refused;
      // A step that would copy onto a part of what it copies does so in place alone. Nobody runs
      // it, since a plan that runs is proved for both, and what would come of it is left open.
      if (mode.in_place && refuses && !refused) continue;
      refused |= refuses;
      TrialOptions options;
      options.slots = mutant.slots;
      options.tiles = tiles;
      options.in_place = mode.in_place;
      options.references = mode.references;
      options.seed = hash_text(mutant.description);
      if (!verdict.found) {
        shown &= is_right(mutant, options);
        continue;
      }
      if (count == nullptr) {
        count = &counts_[{plan.name(), mutant.kind(), std::string(name(verdict.found->fault))}];
        ++count->rejected;
      }
      shown &= shows(mutant, *verdict.found, options);
    }
    if (count != nullptr)
      count->shown += shown;
    else
      equivalent_.push_back(title(mutant));
  }

  bool is_right(const Mutant& mutant, TrialOptions options) {
    for (int i = 0; i < seeds_of_the_equivalent; ++i) {
      options.seed = mix(options.seed);
      const Observation seen(mutant.plan, options);
      ++runs_;
      if (seen.right()) continue;
      differ(mutant, options, "proved", seen);
      return false;
    }
    return true;
  }

  bool shows(const Mutant& mutant, const Verdict::Found& found, TrialOptions options) {
    if (found.witness.size() == 2) options.order = {{found.witness[0], found.witness[1]}};
    const Observation seen(mutant.plan, options);
    ++runs_;
    const bool agree = found.fault == Fault::race ? shows_race(found.outcome, seen) ||
                                                        shows_otherwise(mutant, found, options)
                                                  : same(found.outcome, seen.outcome());
    if (!agree || !seen.intact())
      differ(mutant, options,
             fmt::format("{}: {}: {}", name(found.fault), found.diagnostic.message,
                         words(found.outcome)),
             seen);
    return agree;
  }

  static bool same(const Outcome& foretold, const Outcome& seen) {
    if (foretold.refused || seen.refused) return foretold.refused == seen.refused;
    if (foretold.hangs || seen.hangs) return foretold.hangs == seen.hangs;
    return foretold.left_over == seen.left_over && foretold.early == seen.early &&
           foretold.wrong == seen.wrong && foretold.unequal == seen.unequal;
  }

  /// In the order of the witness harm is done: where it was foretold, if that is known. By
  /// reference it may be that what waits for a loan waits for ever.
  static bool shows_race(const Outcome& foretold, const Observation& seen) {
    if (!seen.order_kept() || seen.right()) return false;
    const std::vector<Outcome::Chunk>& wrong = seen.outcome().wrong;
    return foretold.wrong.empty() || seen.outcome().hangs ||
           std::any_of(wrong.begin(), wrong.end(), [&](const Outcome::Chunk& chunk) {
             return std::count(foretold.wrong.begin(), foretold.wrong.end(), chunk) > 0;
           });
  }

  /// Where steps race with several others, what was foretold may be the harm of another race, and
  /// this one does it in the other order.
  bool shows_otherwise(const Mutant& mutant, const Verdict::Found& found, TrialOptions options) {
    if (!options.order) return false;
    std::swap(options.order->first, options.order->second);
    const Observation seen(mutant.plan, options);
    ++runs_;
    return seen.intact() && shows_race(found.outcome, seen);
  }

  std::string title(const Mutant& mutant) const { return title_ + " " + mutant.description; }

  void differ(const Mutant& mutant, const TrialOptions& options, const std::string& foretold,
              const Observation& seen) {
    differences_.push_back(fmt::format(
        "{} slots {} tiles {}{}{} seed {:#x}\n  foretold {}\n  seen {}{}{}", title(mutant),
        mutant.slots, options.tiles, options.in_place ? " in place" : "",
        options.references ? " by reference" : "", options.seed, foretold, words(seen.outcome()),
        seen.order_kept() ? "" : ", but not in the order of the witness",
        seen.intact() ? "" : ", and memory damaged that is no output"));
  }

  static std::string words(const Outcome& outcome) {
    std::string text = outcome.refused ? "refused " : outcome.hangs ? "hangs " : "";
    if (outcome.left_over) text += "left over ";
    if (outcome.early) text += "early ";
    const auto list = [&](std::string_view what, const std::vector<Outcome::Chunk>& chunks) {
      if (!chunks.empty()) text += what;
      for (const Outcome::Chunk& chunk : chunks)
        text += fmt::format(" output[{}] of rank {}", chunk.chunk, chunk.rank);
    };
    list("wrong", outcome.wrong);
    list("unequal", outcome.unequal);
    return text.empty() ? "all right" : text;
  }

  std::string title_;  // of the plan whose mutants are judged
  int mutants_ = 0;
  int runs_ = 0;
  std::map<std::tuple<std::string, std::string, std::string>, Count> counts_;
  std::vector<std::string> equivalent_;
  std::vector<std::string> differences_;
};

/// Of every registered algorithm; where it makes a difference to it, of ranks on machines of many
/// kinds.
inline MutationReport report_mutants(int first_ranks, int last_ranks) {
  MutationReport report;
  for (const Algorithm* algorithm : algorithms())
    for (int ranks = first_ranks; ranks <= last_ranks; ++ranks) {
      const Collective plain{algorithm->collective, ranks};
      const Collective collective{algorithm->collective, ranks, 0, plain.reduces()};
      for (const Grouping& machines : groupings_for(*algorithm, ranks))
        report.add(make_plan(*algorithm, collective, Topology::machines(machines), Shape{}),
                   algorithm->least_slots,
                   algorithm->by_machine ? " on machines " + text(machines) : "");
    }
  return report;
}

}  // namespace khoro::test
