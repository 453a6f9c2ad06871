// SPDX-License-Identifier: Apache-2.0
// Is a step well formed, and is all there that it needs? A step fires all or nothing.

#include <fmt/format.h>

#include <utility>

#include "plan/proof/machine.h"

namespace khoro::proof {
namespace {

/// The last index is kept for plain sends and receives.
constexpr int channel_indices = 254;
constexpr int most_scratch = 1 << 20;

// The order in which the stages of a step come.
enum Phase : int { awaits, sources, scaling, writes, sinks, signals, offers };

Phase phase_of(Verb verb) noexcept {
  switch (verb) {
    case Verb::await:
      return awaits;
    case Verb::read:
    case Verb::recv:
    case Verb::take:
      return sources;
    case Verb::scale:
      return scaling;
    case Verb::write:
      return writes;
    case Verb::send:
    case Verb::put:
      return sinks;
    case Verb::signal:
      return signals;
    case Verb::offer:
      break;
  }
  return offers;
}

bool comes_once(Phase phase) noexcept {
  return phase == scaling || phase == signals || phase == offers;
}

}  // namespace

bool Machine::examine(Position& lane) {
  lane.lacks = Lack::nothing;
  ++attempt_;
  const std::span<const Stage> stages = std::as_const(*lane.step).stages();
  if (channels_.size() < stages.size()) channels_.resize(stages.size());
  int phase = awaits;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const Stage& stage = stages[i];
    if (!examine_form(lane, stage, phase)) return false;
    if (stage.has_span() && !examine_span(lane, stage)) return false;
    if (stage.has_channel()) {
      channels_[i] = channel_of(lane, stage);
      if (channels_[i] == nullptr) return false;
      if (lane.lacks == Lack::nothing) examine_channel(lane, stage, *channels_[i]);
    } else if (phase == awaits || phase == signals) {
      if (!examine_token(lane, stage)) return false;
    }
  }
  if (phase == awaits) return malformed(lane, "does nothing: it has no source");
  return lane.lacks == Lack::nothing;
}

bool Machine::examine_form(const Position& lane, const Stage& stage, int& phase) {
  const Phase next = phase_of(stage.verb);
  const bool reduces = (stage.flags & Stage::reduces) != 0;
  if (next == sources) {
    if (phase > sources) return malformed(lane, "has a source after what uses it");
    if (reduces != (phase == sources))
      return malformed(lane, reduces ? "reduces before it has a first source"
                                     : "has a second source that is not reduced");
  } else if (next < phase || (next == phase && comes_once(next))) {
    return malformed(lane,
                     "its stages are out of order: await, source, reduce, scale, write, send "
                     "or put, signal");
  } else if (next == offers ? phase != awaits : (phase == awaits && next != awaits)) {
    return malformed(lane, next == offers ? "an offer comes alone" : "begins without a source");
  } else if (reduces) {
    return malformed(lane, "reduces something that is no source");
  }
  if ((stage.flags & Stage::premul) != 0 && stage.verb != Verb::read)
    return malformed(lane, "applies a factor to something that is no span read");
  phase = next;
  return true;
}

bool Machine::examine_span(const Position& lane, const Stage& stage) {
  const int limit = stage.buffer == Buffer::input    ? world_.input_chunks
                    : stage.buffer == Buffer::output ? world_.output_chunks
                                                     : most_scratch;
  if (stage.first < 0 || stage.first > stage.last || stage.last > limit)
    return malformed(lane, fmt::format("chunks [{}:{}) of {}: there are {}", stage.first,
                                       stage.last, name(stage.buffer), limit));
  if (stage.buffer != Buffer::input || stage.first == stage.last) return true;
  if (stage.verb != Verb::read) return stop(Fault::input_written, lane, "writes into the input");
  const Collective& collective = world_.plan->collective;
  if (collective.kind == CollectiveKind::broadcast && lane.rank != collective.root)
    return malformed(lane, fmt::format("reads the input of a rank that has none: the root is {}",
                                       collective.root));
  return true;
}

bool Machine::examine_token(Position& lane, const Stage& stage) {
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
  if (token.last_attempt == attempt_)
    return malformed(lane, fmt::format("awaits token {} twice", token.token.name));
  token.last_attempt = attempt_;
  if (token.count > 0 || lane.lacks != Lack::nothing) return true;
  lane.lacks = Lack::token;
  lane.token = stage.token();
  token.awaiter_waits = true;
  return true;
}

void Machine::examine_channel(Position& lane, const Stage& stage, Channel& channel) {
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
  if (lack == Lack::nothing) return;
  lane.lacks = lack;
  lane.channel = &channel;
  if (is_sink(stage.verb))
    channel.sender_waits = true;
  else
    channel.receiver_waits = true;
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
  std::uint64_t& last_attempt = sends ? channel.sent_by : channel.received_by;
  if (last_attempt == attempt_) {
    malformed(lane, fmt::format("names channel {}.{} twice as {}", stage.peer(), index,
                                sends ? "sink" : "source"));
    return nullptr;
  }
  last_attempt = attempt_;
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
