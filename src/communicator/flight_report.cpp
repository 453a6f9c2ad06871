// SPDX-License-Identifier: Apache-2.0
#include "communicator/flight_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/ranks.h"
#include "communicator/cycle.h"
#include "communicator/report.h"

namespace khoro {
namespace {

/// What one rank's page says, read once: it may change meanwhile.
struct Reading {
  std::uint64_t calls = 0;
  std::vector<CallRecord> finished;
  std::vector<CallRecord> under_way;
  bool gave_up = false;
  bool left = false;
};

Reading read(const RankPage& page) {
  Reading reading;
  reading.gave_up = page.posted();
  reading.left = page.closed();
  reading.calls = page.calls();
  reading.under_way = page.under_way().calls;
  const auto add_last_finished = [&](std::uint64_t newest, auto record) {
    for (std::uint64_t number = newest; number > 0 && newest - number < RankPage::ring; --number) {
      const auto call = record(number);
      if (call && call->state == CallState::finished) return reading.finished.push_back(*call);
    }
  };
  add_last_finished(reading.calls, [&](std::uint64_t number) { return page.record(number); });
  add_last_finished(page.messages(), [&](std::uint64_t place) { return page.message(place); });
  return reading;
}

std::string text_of(std::span<const CallRecord> calls) {
  constexpr std::size_t most = 3;
  if (calls.empty()) return "nothing";
  std::vector<std::string> texts;
  for (const CallRecord& call : calls.first(std::min(calls.size(), most)))
    texts.push_back(fmt::format("#{} {}", call.number, describe(call.signature, call.tag)));
  std::string text = fmt::format("{}", fmt::join(texts, ", "));
  if (calls.size() > most) text += fmt::format(" and {} more", calls.size() - most);
  return text;
}

/// The ranks as those of a communicator. Who has not been seen has called nothing.
Peers peers_of(std::span<const Sighting> ranks) {
  static const RankPage unseen{RankPage::Identity()};
  std::vector<Peers::Member> members;
  for (const Sighting& rank : ranks) {
    const auto place = static_cast<std::size_t>(rank.rank);
    if (members.size() <= place) members.resize(place + 1, {&unseen, Doorbell(), 0, false});
    members[place].page = rank.page;
  }
  return Peers(-1, std::move(members));
}

/// The collective that the ranks are in or should be: the last that one of them has not ended.
std::uint64_t collective_at_issue(std::span<const Reading> readings,
                                  const std::optional<Cause>& cause) noexcept {
  if (cause && cause->code == Code::mismatch && !Signature{cause->kind}.point_to_point())
    return cause->operation;
  std::uint64_t number = 0;
  for (const Reading& reading : readings)
    for (const CallRecord& call : reading.under_way)
      if (!call.signature.point_to_point()) number = std::max(number, call.number);
  return number;
}

/// What is said of some ranks because of others, by rank.
using Blame = std::map<int, std::pair<RankVerdict, std::string>>;

Blame blame(const Peers& peers, std::uint64_t at_issue, const std::optional<Cause>& cause) {
  Blame blame;
  for (const int rank : odd_ranks(peers, at_issue)) blame[rank].first = RankVerdict::mismatch;
  if (!cause || cause->culprit < 0 || cause->culprit >= peers.ranks()) return blame;
  const int culprit = cause->culprit;
  if (cause->code == Code::aborted) blame[culprit].first = RankVerdict::aborted;
  if (cause->code == Code::revoked) blame[culprit].first = RankVerdict::revoked;
  if (cause->code != Code::mismatch || !blame.empty()) return blame;
  for (int rank = 0; rank < peers.ranks(); ++rank)
    if (compare_messages(peers, culprit, rank, cause->operation, cause->tag))
      blame[culprit].first = blame[rank].first = RankVerdict::mismatch;
  if (const auto held_back = find_held_back(peers, culprit); blame.empty() && held_back)
    blame[culprit] = {RankVerdict::cycle,
                      fmt::format("waits for rank {}", held_back->waits.signature.peer)};
  // Only now, when the ranks have found it: seen from outside once, it may be an old picture.
  if (blame.empty())
    for (const Wait& wait : find_cycle(peers, culprit).waits)
      blame[wait.rank] = {RankVerdict::cycle, fmt::format("waits for rank {}", wait.peer)};
  return blame;
}

/// The call that others wait for a rank to make: "#3", "send #1 to rank 2", and what was refused
/// instead. Empty if there is none. Of several, the earliest.
std::string call_lacking(const Sighting& rank, std::span<const Sighting> ranks,
                         std::span<const Reading> readings) {
  const auto order = [](const CallRecord& call) {
    return std::pair(call.signature.point_to_point(), call.number);
  };
  std::optional<CallRecord> first;
  int caller = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    for (const CallRecord& call : readings[i].under_way) {
      if (call.signature.point_to_point() && call.signature.peer != rank.rank) continue;
      if (!lacks(*rank.page, ranks[i].rank, call)) continue;
      if (first && order(*first) <= order(call)) continue;
      first = call;
      caller = ranks[i].rank;
    }
  }
  if (!first) return {};
  std::string text = fmt::format("#{}", first->number);
  if (first->signature.point_to_point()) {
    Signature wanted = first->signature;
    wanted.kind = other_end(wanted.kind);
    wanted.peer = caller;
    text = title(wanted, first->number, first->tag);
  }
  if (const auto refused = refused_instead(*rank.page, caller, *first))
    text += fmt::format("; its {} was refused for its arguments",
                        describe(refused->signature, refused->tag));
  return text;
}

auto words_of(const RankAccount& account) {
  return std::tie(account.finished, account.under_way, account.verdict, account.detail);
}

}  // namespace

std::string_view name(RankVerdict verdict) noexcept {
  constexpr std::string_view names[] = {
      "between calls", "in a call",  "has left", "has not called", "aborted",
      "revoked",       "in a cycle", "mismatch", "stopped",        "dead"};
  return names[static_cast<int>(verdict)];
}

std::vector<RankAccount> account_for(std::span<const Sighting> ranks,
                                     const std::optional<Cause>& cause) {
  std::vector<Reading> readings;
  for (const Sighting& rank : ranks) readings.push_back(read(*rank.page));
  const Blame blamed = blame(peers_of(ranks), collective_at_issue(readings, cause), cause);
  std::vector<RankAccount> accounts;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const Sighting& rank = ranks[i];
    const Reading& reading = readings[i];
    RankAccount& account = accounts.emplace_back();
    account.rank = rank.rank;
    account.pid = rank.pid;
    account.calls = reading.calls;
    account.gave_up = reading.gave_up;
    account.finished = text_of(reading.finished);
    account.under_way = text_of(reading.under_way);
    if (rank.process == ProcessState::ended && !reading.left && !reading.gave_up) {
      account.verdict = RankVerdict::dead;
      account.detail = rank.end;
    } else if (rank.process == ProcessState::stopped) {
      account.verdict = RankVerdict::stopped;
    } else if (const auto found = blamed.find(rank.rank); found != blamed.end()) {
      std::tie(account.verdict, account.detail) = found->second;
    } else if (reading.left) {
      account.verdict = RankVerdict::left;
    } else if (!reading.under_way.empty()) {
      account.verdict = RankVerdict::in_call;
    } else if (account.detail = call_lacking(rank, ranks, readings); !account.detail.empty()) {
      account.verdict = RankVerdict::not_called;
    }
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
  const std::string ranks = ranks_in_words(worst.ranks);
  const bool one = worst.ranks.size() == 1;
  switch (worst.account.verdict) {
    case RankVerdict::dead:
    case RankVerdict::stopped:
    case RankVerdict::between_calls:
    case RankVerdict::in_call:
      return fmt::format("{} {} {}", ranks, one ? "is" : "are", name(worst.account.verdict));
    case RankVerdict::mismatch:
      return ranks + (one ? " made another call than most" : " made calls that differ");
    case RankVerdict::not_called:
      return fmt::format("{} {} not called {}", ranks, one ? "has" : "have", worst.account.detail);
    case RankVerdict::cycle:
      return ranks + (one ? " waits for a message behind one that it has no room to keep"
                          : " wait for each other in a cycle");
    case RankVerdict::aborted:
    case RankVerdict::revoked:
      return fmt::format("{} {} the communicator", ranks, name(worst.account.verdict));
    case RankVerdict::left:
      break;
  }
  return fmt::format("{} {} left the communicator", ranks, one ? "has" : "have");
}

std::vector<std::string> lines_of(std::span<const RankGroup> groups) {
  std::vector<std::string> lines;
  for (const RankGroup& each : groups) {
    const RankAccount& account = each.account;
    lines.push_back(fmt::format(
        "{}{}: {}{}{}; last finished: {}; not finished: {}", ranks_in_words(each.ranks),
        account.pid == 0 ? "" : fmt::format(" (process {})", account.pid), name(account.verdict),
        account.detail.empty()                       ? ""
        : account.verdict == RankVerdict::not_called ? " "
                                                     : ", ",
        account.detail, account.finished, account.under_way));
  }
  return lines;
}

}  // namespace khoro
