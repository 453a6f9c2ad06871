// SPDX-License-Identifier: Apache-2.0
#include "communicator/flight_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "rendezvous/meeting.h"

namespace khoro {
namespace {

/// What one rank's page says, read once: it may change meanwhile.
struct Reading {
  std::uint64_t calls = 0;
  std::optional<CallRecord> finished;
  std::optional<CallRecord> under_way;
  bool gave_up = false;
  bool left = false;
};

Reading read(const RankPage& page) noexcept {
  Reading reading;
  reading.gave_up = page.posted();
  reading.left = page.closed();
  reading.calls = page.calls();
  const std::uint64_t oldest = reading.calls - std::min<std::uint64_t>(reading.calls, 8);
  for (std::uint64_t number = reading.calls; number > oldest && !reading.finished; --number) {
    const auto call = page.record(number);
    if (!call) continue;
    (call->state == CallState::finished ? reading.finished : reading.under_way) = call;
  }
  return reading;
}

std::string text_of(const std::optional<CallRecord>& call) {
  if (!call) return "nothing";
  return fmt::format("#{} {}", call->number, describe(call->signature));
}

bool same(const CallRecord& a, const CallRecord& b) noexcept {
  return a.signature == b.signature && a.plan_hash == b.plan_hash;
}

/// The ranks, by index, whose call `number` is not that of most; all if there is no majority.
std::vector<bool> odd_ones(std::span<const Sighting> ranks, std::uint64_t number) {
  std::vector<std::optional<CallRecord>> calls;
  for (const Sighting& rank : ranks) calls.push_back(rank.page->record(number));
  std::vector<std::pair<CallRecord, std::size_t>> counts;
  for (const auto& call : calls) {
    if (!call) continue;
    const auto known = std::find_if(counts.begin(), counts.end(),
                                    [&](const auto& each) { return same(each.first, *call); });
    if (known == counts.end())
      counts.emplace_back(*call, 1);
    else
      ++known->second;
  }
  std::stable_sort(counts.begin(), counts.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  const bool agree = counts.size() < 2;
  const bool majority = !agree && counts[0].second > counts[1].second;
  std::vector<bool> odd;
  for (const auto& call : calls)
    odd.push_back(!agree && call && !(majority && same(*call, counts[0].first)));
  return odd;
}

/// The collective that the ranks are in or should be: the last that one of them has not ended.
std::uint64_t collective_at_issue(std::span<const Reading> readings,
                                  const std::optional<Cause>& cause) noexcept {
  if (cause && cause->code == Code::mismatch && cause->kind < CallKind::send)
    return cause->operation;
  std::uint64_t number = 0;
  for (const Reading& reading : readings)
    if (reading.under_way) number = std::max(number, reading.under_way->number);
  return number;
}

void judge(RankAccount& account, const Sighting& rank, const Reading& reading,
           std::uint64_t at_issue) {
  const auto say = [&](Verdict verdict, std::string detail = {}) {
    account.verdict = verdict;
    account.detail = std::move(detail);
  };
  if (rank.process == ProcessState::ended && !reading.left && !reading.gave_up)
    return say(Verdict::dead, rank.end);
  if (rank.process == ProcessState::stopped) return say(Verdict::stopped);
  if (account.verdict == Verdict::mismatch || account.verdict == Verdict::aborted) return;
  if (reading.left) return say(Verdict::left);
  if (reading.under_way) return say(Verdict::in_call);
  if (reading.calls >= at_issue) return say(Verdict::between_calls);
  const auto refused = rank.page->refused();
  say(Verdict::not_called, refused && refused->number + 1 == at_issue
                               ? fmt::format("#{}; its {} was refused for its arguments", at_issue,
                                             describe(refused->signature))
                               : fmt::format("#{}", at_issue));
}

std::string who(const RankGroup& group) {
  return fmt::format("rank{} {}", group.ranks.size() == 1 ? "" : "s", list_of(group.ranks));
}

auto words_of(const RankAccount& account) {
  return std::tie(account.finished, account.under_way, account.verdict, account.detail);
}

}  // namespace

std::string_view name(Verdict verdict) noexcept {
  constexpr std::string_view names[] = {"between calls", "in a call", "has left", "has not called",
                                        "aborted",       "mismatch",  "stopped",  "dead"};
  return names[static_cast<int>(verdict)];
}

std::vector<RankAccount> account_for(std::span<const Sighting> ranks,
                                     const std::optional<Cause>& cause) {
  std::vector<Reading> readings;
  for (const Sighting& rank : ranks) readings.push_back(read(*rank.page));
  const std::uint64_t at_issue = collective_at_issue(readings, cause);
  const std::vector<bool> odd = odd_ones(ranks, at_issue);
  std::vector<RankAccount> accounts;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    RankAccount account;
    account.rank = ranks[i].rank;
    account.pid = ranks[i].pid;
    account.calls = readings[i].calls;
    account.finished = text_of(readings[i].finished);
    account.under_way = text_of(readings[i].under_way);
    if (odd[i]) account.verdict = Verdict::mismatch;
    if (cause && cause->code == Code::aborted && cause->culprit == ranks[i].rank)
      account.verdict = Verdict::aborted;
    judge(account, ranks[i], readings[i], at_issue);
    accounts.push_back(std::move(account));
  }
  return accounts;
}

std::vector<RankGroup> group(std::span<const RankAccount> accounts) {
  std::vector<RankGroup> groups;
  for (const RankAccount& account : accounts) {
    auto known = std::find_if(groups.begin(), groups.end(), [&](const RankGroup& each) {
      return words_of(each.account) == words_of(account);
    });
    if (known == groups.end()) known = groups.insert(known, RankGroup{{}, account});
    known->ranks.insert(account.rank);
    if (known->account.pid != account.pid) known->account.pid = 0;
  }
  std::stable_sort(groups.begin(), groups.end(), [](const RankGroup& a, const RankGroup& b) {
    return std::pair(b.account.verdict, *a.ranks.begin()) <
           std::pair(a.account.verdict, *b.ranks.begin());
  });
  return groups;
}

std::string headline(std::span<const RankGroup> groups) {
  if (groups.empty()) return "nothing is known of its ranks";
  RankGroup worst = groups.front();
  for (const RankGroup& each : groups)
    if (each.account.verdict == worst.account.verdict)
      worst.ranks.insert(each.ranks.begin(), each.ranks.end());
  const bool one = worst.ranks.size() == 1;
  switch (worst.account.verdict) {
    case Verdict::dead:
    case Verdict::stopped:
    case Verdict::between_calls:
    case Verdict::in_call:
      return fmt::format("{} {} {}", who(worst), one ? "is" : "are", name(worst.account.verdict));
    case Verdict::mismatch:
      return who(worst) + (one ? " made another call than most" : " made calls that differ");
    case Verdict::not_called:
      return fmt::format("{} {} not called {}", who(worst), one ? "has" : "have",
                         worst.account.detail);
    case Verdict::aborted:
      return who(worst) + " aborted the communicator";
    case Verdict::left:
      break;
  }
  return fmt::format("{} {} left the communicator", who(worst), one ? "has" : "have");
}

std::vector<std::string> lines_of(std::span<const RankGroup> groups) {
  std::vector<std::string> lines;
  for (const RankGroup& each : groups) {
    const RankAccount& account = each.account;
    lines.push_back(fmt::format("{}{}: {}{}{}; last finished: {}; under way: {}", who(each),
                                account.pid == 0 ? "" : fmt::format(" (process {})", account.pid),
                                name(account.verdict),
                                account.detail.empty()                   ? ""
                                : account.verdict == Verdict::not_called ? " "
                                                                         : ", ",
                                account.detail, account.finished, account.under_way));
  }
  return lines;
}

}  // namespace khoro
