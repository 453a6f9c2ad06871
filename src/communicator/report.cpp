// SPDX-License-Identifier: Apache-2.0
#include "communicator/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace khoro {
namespace {

std::string during(const Cause& cause) {
  if (cause.operation == 0) return " while no operation was under way";
  return " during " + title(cause.kind, cause.operation, cause.tag);
}

/// Of a deadline that passed on another rank.
std::string late(const Cause& cause, const Peers& peers) {
  if (cause.operation == 0) return "a deadline passed";
  std::string text =
      title(cause.kind, cause.operation, cause.tag) + " was not done by the deadline: ";
  const bool message = Signature{cause.kind}.point_to_point();
  if (cause.culprit < 0)
    text += "it is not known for whom it waited";
  else if (message || peers.page(cause.culprit).calls() >= cause.operation)
    text += "it waited for " + peers.who(cause.culprit);
  else
    text += peers.who(cause.culprit) + " did not call it";
  return text;
}

/// "; the call is khoroAllReduce(...)", if it is a collective that some rank has recorded.
std::string called(const Cause& cause, const Peers& peers) {
  if (cause.operation == 0 || Signature{cause.kind}.point_to_point()) return {};
  for (int rank = 0; rank < peers.ranks(); ++rank)
    if (const auto call = peers.page(rank).record(cause.operation))
      return "; the call is " + describe(call->signature);
  return {};
}

std::string_view advice(Code code) {
  switch (code) {
    case Code::timeout:
      return "look at what that rank does instead, or set a longer deadline, by KHORO_DEADLINE or "
             "in the program";
    case Code::peer_died:
      return "look at the output of that process for why; this communicator is unusable: destroy "
             "it and restart the job, or make a new one without that rank";
    default:
      return "this communicator is unusable: destroy it and restart the job, or make a new one";
  }
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

/// The first of several is that of most, and the others are odd.
bool of_most(const std::vector<Opinion>& calls) {
  return calls[0].ranks.size() > calls[1].ranks.size();
}

std::string describe_call(const Opinion& opinion, bool plans_differ) {
  std::string text = describe(opinion.call.signature);
  if (plans_differ) text += fmt::format(" (plan {:016x})", opinion.call.plan_hash);
  return text;
}

}  // namespace

std::string words_of_damage(const std::string& call, const std::string& who) {
  return fmt::format(
      "{}: {} wrote what no correct rank writes; its memory is damaged or it runs another version",
      call, who);
}

std::string list_ranks(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (i > 0) text += i + 1 == ranks.size() ? " and " : ", ";
    text += std::to_string(ranks[i]);
  }
  return text;
}

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
    case Code::revoked:
      text = who + " revoked the communicator" + during(cause);
      break;
    case Code::timeout:
      text = late(cause, peers);
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
  return fmt::format("{}{}; {}", text, called(cause, peers), advice(cause.code));
}

std::vector<int> missing_ranks(const Peers& peers, std::uint64_t number) {
  std::vector<int> missing;
  for (int rank = 0; rank < peers.ranks(); ++rank)
    if (peers.page(rank).calls() < number) missing.push_back(rank);
  return missing;
}

std::vector<int> odd_ranks(const Peers& peers, std::uint64_t number) {
  const auto calls = opinions(peers, number);
  std::vector<int> odd;
  if (calls.size() < 2) return odd;
  for (std::size_t i = of_most(calls) ? 1 : 0; i < calls.size(); ++i)
    odd.insert(odd.end(), calls[i].ranks.begin(), calls[i].ranks.end());
  return odd;
}

std::optional<Finding> compare_calls(const Peers& peers, std::uint64_t number) {
  const auto calls = opinions(peers, number);
  if (calls.size() < 2) return std::nullopt;
  const bool plans_differ = std::all_of(calls.begin(), calls.end(), [&](const Opinion& opinion) {
    return opinion.call.signature == calls.front().call.signature;
  });
  const bool majority = of_most(calls);
  std::string text = fmt::format("collective #{} is not the same call on every rank: ", number);
  std::size_t seen = 0;
  for (std::size_t i = majority ? 1 : 0; i < calls.size(); ++i) {
    seen += calls[i].ranks.size();
    text += fmt::format("{} called {}, ", list_ranks(calls[i].ranks),
                        describe_call(calls[i], plans_differ));
  }
  if (majority) {
    const bool all = seen + calls[0].ranks.size() == static_cast<std::size_t>(peers.ranks());
    text += fmt::format("{} called {}, ", all ? "the others" : list_ranks(calls[0].ranks),
                        describe_call(calls[0], plans_differ));
  }
  text.replace(text.size() - 2, 2, "; ");
  if (!plans_differ)
    text += "make the same calls in the same order on every rank";
  else if (calls.front().call.signature.reduction == Reduction::user)
    text += "use the reduction that was made with the same name on every rank";
  else
    text += "run the same Khoro with the same settings on every rank";
  Cause cause{Code::mismatch, calls[majority ? 1 : 0].ranks.front(), calls[0].call.signature.kind,
              number};
  return Finding{cause, text};
}

namespace {

/// The number of a collective that the two called differently: the first that their records show,
/// or the last that both have called where those have been overwritten. Nothing if they agree.
std::optional<std::uint64_t> first_difference(const RankPage& one, const RankPage& other) {
  const auto a = one.history(), b = other.history();
  if (!a || !b) return std::nullopt;
  const RankPage& page = a->calls >= b->calls ? one : other;
  const auto [behind, ahead] = a->calls >= b->calls ? std::pair(*b, *a) : std::pair(*a, *b);
  if (ahead.calls - behind.calls >= RankPage::ring) return std::nullopt;
  std::uint64_t chain = behind.chain;
  for (std::uint64_t number = behind.calls + 1; number <= ahead.calls; ++number) {
    const auto call = page.record(number);
    if (!call) return std::nullopt;
    chain = chained(chain, call->signature);
  }
  if (chain == ahead.chain) return std::nullopt;
  const std::uint64_t kept = ahead.calls > RankPage::ring ? ahead.calls - RankPage::ring : 0;
  for (std::uint64_t number = kept + 1; number <= behind.calls; ++number) {
    const auto mine = one.record(number), its = other.record(number);
    if (mine && its && mine->signature != its->signature) return number;
  }
  return behind.calls;
}

}  // namespace

std::optional<Finding> compare_histories(const Peers& peers) {
  const int next = (peers.rank() + 1) % peers.ranks();
  const auto number = first_difference(peers.page(peers.rank()), peers.page(next));
  if (!number) return std::nullopt;
  if (auto found = compare_calls(peers, *number)) return found;
  const auto call = peers.page(next).record(*number);
  return Finding{
      {Code::mismatch, next, call ? call->signature.kind : CallKind::allreduce, *number},
      fmt::format("ranks {} and {} did not make the same calls before collective #{}, but so far "
                  "back that their records are overwritten; make the same calls in the same order "
                  "on every rank",
                  peers.rank(), next, *number)};
}

namespace {

/// The newest of a kind with one rank and tag that `fits`.
template <class Fits>
std::optional<CallRecord> newest_message(const RankPage& page, CallKind kind, int peer,
                                         std::uint32_t tag, Fits fits) {
  const std::uint64_t last = page.messages();
  for (std::uint64_t back = 0; back < RankPage::ring && back < last; ++back) {
    auto call = page.message(last - back);
    if (call && call->signature.kind == kind && call->signature.peer == peer && call->tag == tag &&
        fits(*call))
      return call;
  }
  return std::nullopt;
}

}  // namespace

std::optional<CallRecord> find_message(const RankPage& page, CallKind kind, int peer,
                                       std::uint64_t number, std::uint32_t tag) {
  return newest_message(page, kind, peer, tag,
                        [number](const CallRecord& call) { return call.number == number; });
}

Finding unequal_ends(const CallRecord& sent, const CallRecord& received) {
  const int sender = received.signature.peer, receiver = sent.signature.peer;
  const std::string with_tag = sent.tag != 0 ? fmt::format(" with tag {}", sent.tag) : "";
  return {{Code::mismatch, sender, CallKind::recv, sent.number, sent.tag},
          fmt::format("message #{}{} from rank {} to rank {} is not the same at both ends: rank {} "
                      "called {}, rank {} called {}; name the same count and type at both",
                      sent.number, with_tag, sender, receiver, sender,
                      describe(sent.signature, sent.tag), receiver,
                      describe(received.signature, received.tag))};
}

std::optional<Finding> compare_messages(const Peers& peers, int sender, int receiver,
                                        std::uint64_t number, std::uint32_t tag) {
  if (receiver < 0) {
    for (int rank = 0; rank < peers.ranks(); ++rank)
      if (auto found = compare_messages(peers, sender, rank, number, tag)) return found;
    return std::nullopt;
  }
  const auto sent = find_message(peers.page(sender), CallKind::send, receiver, number, tag);
  const auto received = find_message(peers.page(receiver), CallKind::recv, sender, number, tag);
  if (!sent || !received ||
      (sent->signature.count == received->signature.count &&
       sent->signature.dtype == received->signature.dtype))
    return std::nullopt;
  return unequal_ends(*sent, *received);
}

bool lacks(const RankPage& page, int caller, const CallRecord& call) {
  const CallKind kind = call.signature.kind;
  if (!call.signature.point_to_point()) return page.calls() < call.number;
  if (call.tag == 0) return !find_message(page, other_end(kind), caller, call.number);
  // Numbers may differ: see `TagCounts`.
  return !newest_message(page, other_end(kind), caller, call.tag, [](const CallRecord& other) {
    return other.state == CallState::under_way;
  });
}

std::optional<CallRecord> refused_instead(const RankPage& page, int caller,
                                          const CallRecord& call) {
  const auto refused = page.refused();
  if (!refused || !lacks(page, caller, call)) return std::nullopt;
  const Signature& signature = refused->signature;
  // It has begun nothing of that order since.
  const bool meant = call.signature.point_to_point()
                         ? signature.kind == other_end(call.signature.kind) &&
                               signature.peer == caller && refused->tag == call.tag &&
                               refused->number == page.messages()
                         : !signature.point_to_point() && refused->number + 1 == call.number;
  return meant ? refused : std::nullopt;
}

Finding timed_out(const Peers& peers, const CallRecord& call, int waited_for,
                  std::int64_t deadline_ms) {
  Cause cause{Code::timeout, waited_for, call.signature.kind, call.number, call.tag};
  const bool whole = deadline_ms % 1000 == 0;
  std::string text =
      fmt::format("{} was not done after {} {}: ", title(call.signature, call.number, call.tag),
                  whole ? deadline_ms / 1000 : deadline_ms, whole ? "s" : "ms");
  std::vector<int> missing;
  if (!call.signature.point_to_point()) missing = missing_ranks(peers, call.number);
  if (!missing.empty()) {
    cause.culprit = missing.front();
    text += fmt::format("{} did not call it", list_ranks(missing));
  } else if (waited_for >= 0) {
    text += fmt::format("rank {} waited for {}", peers.rank(), peers.who(waited_for));
  } else {
    text += "every rank called it";
  }
  if (cause.culprit >= 0)
    if (const auto refused = refused_instead(peers.page(cause.culprit), peers.rank(), call))
      text += fmt::format(", and on rank {} {} was refused for its arguments", cause.culprit,
                          describe(refused->signature, refused->tag));
  text += fmt::format(
      "; the call is {}; look at what {} instead, or set a longer deadline, by KHORO_DEADLINE or "
      "in the program",
      describe(call.signature, call.tag), missing.size() > 1 ? "these ranks do" : "that rank does");
  return {cause, text};
}

}  // namespace khoro
