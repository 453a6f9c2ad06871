// SPDX-License-Identifier: Apache-2.0
// Is a step well formed, is all there that it needs, and does it fit? A step fires all or nothing.

#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>

#include "plan/proof/machine.h"

namespace khoro::proof {
namespace {

/// The last indices are kept for sends and receives.
constexpr int channel_indices = 253;
constexpr int most_scratch = 1 << 20;

// The order in which the stages of a step come.
enum Phase : int { awaits, sources, scaling, writes, sinks, signals, offers };

// In the order of the verbs: a table, for proofs ask this of every stage.
constexpr std::array<Phase, 10> phases = {awaits,  offers, sources, sources, sources,
                                          scaling, writes, sinks,   sinks,   signals};
static_assert(static_cast<std::size_t>(Verb::signal) + 1 == phases.size());

constexpr Phase phase_of(Verb verb) noexcept { return phases[static_cast<std::size_t>(verb)]; }

/// Of each phase, a bit for each phase that may come next.
constexpr std::array<unsigned, 7> followers = {
    1u << awaits | 1u << sources | 1u << offers,
    1u << sources | 1u << scaling | 1u << writes | 1u << sinks | 1u << signals,
    1u << writes | 1u << sinks | 1u << signals,
    1u << writes | 1u << sinks | 1u << signals,
    1u << sinks | 1u << signals,
    0,
    0,
};

/// What is wrong with a stage that comes after `phase`; precondition: something is.
std::string fault_of_form(const Stage& stage, int phase) {
  if ((followers[static_cast<std::size_t>(phase)] >> phase_of(stage.verb) & 1u) == 0) {
    if (phase == awaits) return "begins without a source";
    return "its stages are out of order: await, source, reduce, scale, write, send or put, signal; "
           "an offer comes alone";
  }
  if ((stage.flags & Stage::premul) != 0 && stage.verb != Verb::read)
    return "applies a factor to something that is no span read";
  if ((stage.flags & Stage::reduces) == 0) return "has a second source that is not reduced";
  return phase == awaits && stage.is_source() ? "reduces before it has a first source"
                                              : "reduces something that is no source";
}

}  // namespace

bool Machine::examine(Position& lane) {
  if (!lane.inspected) {
    if (!inspect(lane)) return false;
    lane.inspected = true;
  }
  const std::span<const Stage> stages = std::as_const(*lane.step).stages();
  sized_ = received_ = false;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const Stage& stage = stages[i];
    Channel* const channel = stage.has_channel() ? lane.channels[i] : nullptr;
    const bool receives = channel != nullptr && stage.is_source();
    if (receives ? lacks_channel(lane, stage, *channel)
                 : stage.verb == Verb::await && lacks_token(lane, stage))
      return false;
    // Sizes are looked at before a step waits for room: that is what executors do.
    if (!agrees(lane, stage, channel)) return false;
    if ((channel != nullptr && !receives && lacks_channel(lane, stage, *channel)) ||
        (world_.options.references && lacks_loan(lane, stage)))
      return false;
  }
  return true;
}

bool Machine::inspect(Position& lane) {
  ++inspected_;
  const std::span<const Stage> stages = std::as_const(*lane.step).stages();
  if (lane.channels.size() < stages.size()) lane.channels.resize(stages.size());
  int phase = awaits;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const Stage& stage = stages[i];
    if (!inspect_form(lane, stage, phase)) return false;
    if (stage.has_span() && !inspect_span(lane, stage)) return false;
    if (stage.has_channel()) {
      lane.channels[i] = channel_of(lane, stage);
      if (lane.channels[i] == nullptr) return false;
    } else if ((phase == awaits || phase == signals) && !inspect_token(lane, stage)) {
      return false;
    }
  }
  return phase != awaits || malformed(lane, "does nothing: it has no source");
}

bool Machine::inspect_form(const Position& lane, const Stage& stage, int& phase) {
  const int next = phase_of(stage.verb);
  const bool reduces = (stage.flags & Stage::reduces) != 0;
  const bool premul = (stage.flags & Stage::premul) != 0;
  if ((followers[static_cast<std::size_t>(phase)] >> next & 1u) == 0 ||
      reduces != (phase == sources && next == sources) || (premul && stage.verb != Verb::read))
    return malformed(lane, fault_of_form(stage, phase));
  phase = next;
  return true;
}

bool Machine::inspect_span(const Position& lane, const Stage& stage) {
  const int limit = stage.buffer == Buffer::input    ? world_.input_chunks
                    : stage.buffer == Buffer::output ? world_.output_chunks
                                                     : most_scratch;
  if (stage.first < 0 || stage.first > stage.last || stage.last > limit)
    return malformed(lane, fmt::format("chunks [{}:{}) of {}: there are {}", stage.first,
                                       stage.last, name(stage.buffer), limit));
  // Who fills a window decides how long a chunk of scratch is.
  if (stage.buffer == Buffer::scratch && stage.verb == Verb::offer && stage.last - stage.first != 1)
    return malformed(lane, "offers other than one chunk of scratch at a time");
  if (stage.first == stage.last) return true;
  const Collective& collective = world_.plan->collective;
  if (stage.buffer == Buffer::output && !collective.has_output(lane.rank))
    return malformed(lane, fmt::format("names the output of a rank that has none: the root is {}",
                                       collective.root));
  if (stage.buffer != Buffer::input) return true;
  if (stage.verb != Verb::read) return stop(Fault::input_written, lane, "writes into the input");
  if (!collective.has_input(lane.rank))
    return malformed(lane, fmt::format("reads the input of a rank that has none: the root is {}",
                                       collective.root));
  return true;
}

bool Machine::inspect_token(const Position& lane, const Stage& stage) {
  RankState& rank = world_.ranks[static_cast<std::size_t>(lane.rank)];
  if (stage.token() < 0 || static_cast<std::size_t>(stage.token()) >= rank.tokens.size())
    return malformed(
        lane, fmt::format("names token {}: the rank has {}", stage.token(), rank.tokens.size()));
  TokenState& token = rank.tokens[static_cast<std::size_t>(stage.token())];
  const bool awaits = stage.verb == Verb::await;
  const int self = rank.first_lane + lane.lane;
  int& owner = awaits ? token.awaiter : token.signaller;
  if (owner == nobody) owner = self;
  if (owner != self)
    return malformed(lane, fmt::format("{} token {}, as lane {} does: a token has one lane that "
                                       "signals and one that awaits",
                                       awaits ? "awaits" : "signals", token.token.name,
                                       owner - rank.first_lane));
  if (!awaits) return true;
  if (token.awaited_by == inspected_)
    return malformed(lane, fmt::format("awaits token {} twice", token.token.name));
  token.awaited_by = inspected_;
  return true;
}

/// Every source and sink of a step has as many chunks as the others.
bool Machine::agrees(const Position& lane, const Stage& stage, const Channel* channel) {
  if (is_sink(stage.verb)) return fits(lane, stage, *channel);
  if (!stage.is_source() && stage.verb != Verb::write) return true;
  const auto chunks = static_cast<std::size_t>(
      channel != nullptr ? channel->slots[static_cast<std::size_t>(channel->next_recv)].chunks
                         : stage.last - stage.first);
  received_ = received_ || channel != nullptr;
  if (!sized_) chunks_ = chunks;
  sized_ = true;
  if (chunks == chunks_) return true;
  return stop(received_ ? Fault::pairing : Fault::malformed, lane,
              stage.is_source() ? fmt::format("folds {} chunks into {}", chunks, chunks_)
                                : fmt::format("writes {} chunks to {}", chunks_, chunks));
}

/// A message is no wider than the plan says, and as wide as a window that it is to fill.
bool Machine::fits(const Position& lane, const Stage& stage, const Channel& channel) {
  if (chunks_ > static_cast<std::size_t>(world_.plan->widest_message))
    return malformed(lane, fmt::format("sends {} chunks: the widest message of the plan has {}",
                                       chunks_, world_.plan->widest_message));
  if (stage.verb == Verb::send || channel.windows.size() <= channel.filled) return true;
  const Span window = channel.windows[channel.filled].span;
  const auto room = static_cast<std::size_t>(window.last - window.first);
  return room == chunks_ || stop(Fault::pairing, lane,
                                 fmt::format("puts {} chunks into a window of {}", chunks_, room));
}

bool Machine::lacks_token(Position& lane, const Stage& stage) {
  RankState& rank = world_.ranks[static_cast<std::size_t>(lane.rank)];
  TokenState& token = rank.tokens[static_cast<std::size_t>(stage.token())];
  if (token.count > 0) return false;
  lane.lacks = Lack::token;
  lane.token = stage.token();
  token.awaiter_waits = true;
  return true;
}

bool Machine::lacks_channel(Position& lane, const Stage& stage, Channel& channel) {
  Lack lack = Lack::nothing;
  if (stage.verb == Verb::offer) {
    if (channel.windows.size() >= channel.slots.size()) lack = Lack::room_for_window;
  } else if (stage.is_source()) {
    if (channel.full == 0) lack = Lack::message;
  } else if (static_cast<std::size_t>(channel.full) == channel.slots.size()) {
    lack = Lack::slot;
  } else if (stage.verb == Verb::put && channel.windows.size() <= channel.filled) {
    lack = Lack::window;
  }
  if (lack == Lack::nothing) return false;
  lane.lacks = lack;
  lane.channel = &channel;
  (is_sink(stage.verb) ? channel.sender_waits : channel.receiver_waits) = true;
  return true;
}

/// Null if the stage names no channel that this lane may use here.
Channel* Machine::channel_of(Position& lane, const Stage& stage) {
  const std::uint8_t index =
      stage.index == own_lane ? static_cast<std::uint8_t>(lane.lane) : stage.index;
  const bool sends = is_sink(stage.verb);
  // The order in which a lane uses its ports seldom changes.
  std::uint32_t port = lane.ports.empty() ? 0 : lane.ports[lane.last_port].next;
  if (lane.ports.empty() || lane.ports[port].peer != stage.peer() ||
      lane.ports[port].index != index || lane.ports[port].sends != sends) {
    const std::optional<std::uint32_t> found = port_of(lane, stage.peer(), index, sends);
    if (!found) return nullptr;
    port = *found;
    lane.ports[lane.last_port].next = port;
  }
  lane.last_port = port;
  Channel& channel = *lane.ports[port].channel;
  std::uint64_t& named_by = sends ? channel.sent_by : channel.received_by;
  if (named_by == inspected_) {
    malformed(lane, fmt::format("names channel {}.{} twice as {}", stage.peer(), index,
                                sends ? "sink" : "source"));
    return nullptr;
  }
  named_by = inspected_;
  return &channel;
}

std::optional<std::uint32_t> Machine::port_of(Position& lane, int peer, std::uint8_t index,
                                              bool sends) {
  if (peer < 0 || peer >= world_.plan->collective.ranks || peer == lane.rank ||
      index >= channel_indices) {
    malformed(lane,
              fmt::format("names channel {}.{}: the other ranks are 0..{}, indices 0..{}", peer,
                          index, world_.plan->collective.ranks - 1, channel_indices - 1));
    return std::nullopt;
  }
  const int from = sends ? lane.rank : peer;
  const int to = sends ? peer : lane.rank;
  const std::uint64_t key =
      (static_cast<std::uint64_t>(from) << 24 | static_cast<std::uint64_t>(to)) << 8 | index;
  Channel*& channel = channel_index_[key];
  if (channel == nullptr) {
    channel = &world_.channels.emplace_back();
    channel->from = from;
    channel->to = to;
    channel->index = index;
    channel->slots.resize(static_cast<std::size_t>(world_.options.slots));
    channel->values.resize(channel->slots.size());
  }
  const int self = world_.ranks[static_cast<std::size_t>(lane.rank)].first_lane + lane.lane;
  int& owner = sends ? channel->sender : channel->receiver;
  std::uint32_t& port = sends ? channel->sender_port : channel->receiver_port;
  if (owner == nobody) {
    owner = self;
    port = static_cast<std::uint32_t>(lane.ports.size());
    lane.ports.push_back({channel, peer, index, sends, port});
  }
  if (owner == self) return port;
  malformed(lane, fmt::format("names channel {}.{} as {}, as lane {} does: an end belongs to one "
                              "lane",
                              peer, index, sends ? "sink" : "source",
                              world_.positions[static_cast<std::size_t>(owner)].lane));
  return std::nullopt;
}

}  // namespace khoro::proof
