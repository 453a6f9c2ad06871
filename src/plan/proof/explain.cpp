// SPDX-License-Identifier: Apache-2.0
#include "plan/proof/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "plan/proof/stuck.h"

namespace khoro::proof {
namespace {

constexpr std::size_t most_named = 8;

/// "ranks 1, 2 and 5", "rank 1", "ranks 1, ..., and 20 more"
std::string name_ranks(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size() && i < most_named; ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ", ", ranks[i]);
  if (ranks.size() > most_named) text += fmt::format(" and {} more", ranks.size() - most_named);
  return text;
}

struct Finding {
  std::string message;
  std::optional<StepAt> at;
};

/// How often each rank's chunk is inside, against once.
Finding compare_reduced(const Plan& plan, const Suspect& suspect, const Book& book) {
  std::vector<std::uint64_t> times(static_cast<std::size_t>(plan.collective.ranks));
  for (const Book::Part& part : book.parts(suspect.got.order)) {
    if (part.chunk != suspect.required->chunk)
      return {fmt::format("holds chunk {} of rank {}, and must hold chunk {} of all ranks",
                          part.chunk, part.rank, suspect.required->chunk),
              std::nullopt};
    times[static_cast<std::size_t>(part.rank)] = part.times;
  }
  std::vector<int> missing, doubled;
  for (int rank = 0; rank < plan.collective.ranks; ++rank) {
    const std::uint64_t count = times[static_cast<std::size_t>(rank)];
    if (count == 0) missing.push_back(rank);
    if (count > 1) doubled.push_back(rank);
  }
  std::string message;
  if (!missing.empty()) message = fmt::format("lacks the contribution of {}", name_ranks(missing));
  if (!doubled.empty()) {
    const std::uint64_t count = times[static_cast<std::size_t>(doubled.front())];
    message += fmt::format("{}holds the contribution of {} {}", message.empty() ? "" : " and ",
                           name_ranks(doubled),
                           count == 2 ? std::string("twice") : fmt::format("{} times", count));
    return {message, book.doubled_at(suspect.got.order, doubled.front())};
  }
  if (!message.empty()) return {message, std::nullopt};
  if (suspect.got.scaled != plan.collective.average)
    return {suspect.got.scaled ? "is divided by the number of ranks, which nobody asked for"
                               : "is not divided by the number of ranks",
            std::nullopt};
  return {fmt::format("holds {}, where each rank's own factor (*) must act once",
                      book.tree(suspect.got.order)),
          std::nullopt};
}

/// A plain copy of one rank's chunk is asked for.
Finding compare_copied(const Suspect& suspect, const Book& book) {
  const std::string due =
      fmt::format("chunk {} of rank {}", suspect.required->chunk, suspect.required->from);
  const std::vector<Book::Part> parts = book.parts(suspect.got.order);
  if (parts.size() == 1 && parts[0].times == 1 && suspect.got.scaled)
    return {fmt::format("is divided by the number of ranks, and must be {} as it is", due),
            std::nullopt};
  if (parts.size() == 1 && parts[0].times == 1)
    return {fmt::format("holds chunk {} of rank {}, and must hold {}", parts[0].chunk,
                        parts[0].rank, due),
            std::nullopt};
  return {fmt::format("holds {}, and must hold {}", book.tree(suspect.got.order), due),
          std::nullopt};
}

Finding compare(const Plan& plan, const Suspect& suspect, const Book& book) {
  if (!suspect.required) return {"is written, and must be left as it is", std::nullopt};
  if (!suspect.got.defined) return {"is never written", std::nullopt};
  if (suspect.reference.defined)
    return {fmt::format("is folded as {}, and as {} on a lower rank (' and \" mark roundings)",
                        book.tree(suspect.got.order), book.tree(suspect.reference.order)),
            std::nullopt};
  if (suspect.out_of_order)
    return {fmt::format("is folded as {}, and must be folded from the left in rank order",
                        book.tree(suspect.got.order)),
            std::nullopt};
  if (suspect.required->from == Requirement::all_ranks) return compare_reduced(plan, suspect, book);
  return compare_copied(suspect, book);
}

}  // namespace

void explain(const Plan& plan, const Suspect& suspect, const Book& book, Verdict::Found& found) {
  const Finding finding = compare(plan, suspect, book);
  found.at = finding.at ? finding.at : book.last_write();
  found.diagnostic.message = fmt::format("output[{}] of rank {} {}", suspect.where.chunk,
                                         suspect.where.rank, finding.message);
  found.diagnostic.place =
      found.at ? place_of(plan, *found.at) : fmt::format("rank {}", suspect.where.rank);
}

}  // namespace khoro::proof
