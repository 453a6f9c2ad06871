// SPDX-License-Identifier: Apache-2.0
#include "communicator/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace khoro {
namespace {

constexpr std::string_view advice =
    "the communicator is unusable: destroy it and restart the job, or make a new one without it";

std::string list(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (i > 0) text += i + 1 == ranks.size() ? " and " : ", ";
    text += std::to_string(ranks[i]);
  }
  return text;
}

std::string during(const Cause& cause) {
  if (cause.operation == 0) return " while no operation was under way";
  return " during " + title(cause.kind, cause.operation);
}

struct Opinion {
  CallRecord call;
  std::vector<int> ranks;
};

/// The distinct calls that ranks recorded under one number, the most frequent first.
std::vector<Opinion> opinions(const Peers& peers, std::uint64_t number) {
  std::vector<Opinion> all;
  for (int rank = 0; rank < peers.ranks(); ++rank) {
    const auto call = peers.page(rank).record(number);
    if (!call) continue;
    const auto same = std::find_if(all.begin(), all.end(), [&](const Opinion& opinion) {
      return opinion.call.signature == call->signature && opinion.call.plan_hash == call->plan_hash;
    });
    if (same == all.end())
      all.push_back({*call, {rank}});
    else
      same->ranks.push_back(rank);
  }
  std::stable_sort(all.begin(), all.end(), [](const Opinion& a, const Opinion& b) {
    return a.ranks.size() > b.ranks.size();
  });
  return all;
}

std::string describe_call(const Opinion& opinion, bool plans_differ) {
  std::string text = describe(opinion.call.signature);
  if (plans_differ) text += fmt::format(" (plan {:016x})", opinion.call.plan_hash);
  return text;
}

}  // namespace

std::string words(const Cause& cause, int reporter, const Peers& peers) {
  std::string text;
  const std::string who = peers.who(cause.culprit);
  switch (cause.code) {
    case Code::peer_died:
      text = who + " died" + during(cause);
      break;
    case Code::aborted:
      text = who + " aborted the communicator" + during(cause);
      break;
    case Code::timeout:
      text = cause.culprit < 0 ? "the deadline passed" : who + " did not come by the deadline";
      text += during(cause);
      break;
    case Code::mismatch:
      text = who + " made another call than its peers" + during(cause);
      break;
    default:
      text =
          fmt::format("{} failed{}", cause.culprit < 0 ? peers.who(reporter) : who, during(cause));
  }
  if (reporter >= 0 && reporter != cause.culprit)
    text += fmt::format(", reported by rank {}", reporter);
  return fmt::format("{}; {}", text, advice);
}

std::string missing_ranks(const Peers& peers, std::uint64_t number) {
  std::vector<int> missing;
  for (int rank = 0; rank < peers.ranks(); ++rank)
    if (peers.page(rank).calls() < number) missing.push_back(rank);
  return missing.empty() ? "" : list(missing);
}

std::optional<Finding> compare_calls(const Peers& peers, std::uint64_t number) {
  const auto calls = opinions(peers, number);
  if (calls.size() < 2) return std::nullopt;
  const bool plans_differ = std::all_of(calls.begin(), calls.end(), [&](const Opinion& opinion) {
    return opinion.call.signature == calls.front().call.signature;
  });
  const bool majority = calls[0].ranks.size() > calls[1].ranks.size();
  std::string text = fmt::format("operation #{} does not match:", number);
  std::size_t odd = majority ? 1 : 0;
  for (std::size_t i = odd; i < calls.size(); ++i)
    text += fmt::format("{} {} called {}", i == odd ? "" : ",", list(calls[i].ranks),
                        describe_call(calls[i], plans_differ));
  if (majority) text += fmt::format(", the others {}", describe_call(calls[0], plans_differ));
  text += "; make the same calls in the same order on every rank";
  Cause cause{Code::mismatch, calls[majority ? 1 : 0].ranks.front(), calls[0].call.signature.kind,
              number};
  return Finding{cause, text};
}

Finding timed_out(const Peers& peers, const CallRecord& call, int waited_for,
                  std::int64_t deadline_ms) {
  Cause cause{Code::timeout, waited_for, call.signature.kind, call.number};
  std::string text = fmt::format("{} (#{}) was not done after {} ms: ", describe(call.signature),
                                 call.number, deadline_ms);
  const std::string missing =
      call.signature.point_to_point() ? "" : missing_ranks(peers, call.number);
  if (!missing.empty()) {
    for (int rank = peers.ranks() - 1; rank >= 0; --rank)
      if (peers.page(rank).calls() < call.number) cause.culprit = rank;
    text += missing + " did not call it";
    const auto refused = peers.page(cause.culprit).refused();
    if (refused && refused->number + 1 == call.number)
      text += fmt::format(" (rank {} had a {} refused for its arguments)", cause.culprit,
                          describe(refused->signature));
  } else if (waited_for >= 0) {
    text += fmt::format("rank {} waited for {}", peers.rank(), peers.who(waited_for));
  } else {
    text += "every rank called it";
  }
  text += "; look at what that rank does, or set a longer deadline with khoroCommSetDeadline";
  return {cause, text};
}

}  // namespace khoro
