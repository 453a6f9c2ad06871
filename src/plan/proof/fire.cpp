// SPDX-License-Identifier: Apache-2.0
// What a step does once all is there that it needs.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "plan/proof/machine.h"

namespace khoro::proof {
namespace {

/// Nearly always of one chunk: a call of memmove would cost more.
void copy(const Value* from, std::size_t count, Value* to) {
  if (count == 1)
    *to = *from;
  else
    std::copy_n(from, count, to);
}

}  // namespace

void Channel::widen(std::size_t chunks) {
  if (chunks <= width) return;
  std::vector<Value> wider(slots.size() * chunks);
  for (std::size_t slot = 0; slot < slots.size(); ++slot)
    copy(values.data() + slot * width, width, wider.data() + slot * chunks);
  values = std::move(wider);
  width = chunks;
}

bool Machine::fire(Position& lane) {
  enter(lane);
  const std::span<const Stage> stages = std::as_const(*lane.step).stages();
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const Stage& stage = stages[i];
    switch (stage.verb) {
      case Verb::await:
        break;  // enter() has
      case Verb::read:
        if (!source(lane, stage, nullptr)) return false;
        break;
      case Verb::recv:
      case Verb::take:
        if (!source(lane, stage, lane.channels[i])) return false;
        break;
      case Verb::scale:
        divide(lane);
        break;
      case Verb::write:
        if (!write(lane, stage.span())) return false;
        break;
      case Verb::send:
      case Verb::put:
        transmit(lane, stage, *lane.channels[i]);
        break;
      case Verb::offer:
        grant(lane, stage, *lane.channels[i]);
        break;
      case Verb::signal:
        raise(lane, stage.token());
        break;
    }
  }
  return true;
}

/// Takes the tokens, learns what is known to those it waited for, and begins.
void Machine::enter(Position& lane) {
  ++lane.begun;
  sourced_ = plain_read_ = unrounded_ = false;
  read_spans_.clear();
  written_spans_.clear();
  narrow_spans_.clear();
  const std::span<const Stage> stages = std::as_const(*lane.step).stages();
  for (std::size_t i = 0; i < stages.size() && stages[i].verb == Verb::await; ++i)
    take_token(lane, stages[i].token());
  if (places_.empty()) return;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (!stages[i].has_channel() || stages[i].verb == Verb::offer) continue;
    const Channel& channel = *lane.channels[i];
    const bool sends = is_sink(stages[i].verb);
    const int slot = sends ? channel.next_send : channel.next_recv;
    lane.clock.join(channel.slots[static_cast<std::size_t>(slot)].clock);
    if (stages[i].verb == Verb::put) lane.clock.join(channel.windows[channel.filled].clock);
  }
  if (!lane.tracked) return;
  now_ = {lane.place, static_cast<std::uint32_t>(lane.begun)};
  lane.clock.set(now_, places_.size());
}

void Machine::take_token(Position& lane, int number) {
  RankState& rank = world_.ranks[static_cast<std::size_t>(lane.rank)];
  TokenState& token = rank.tokens[static_cast<std::size_t>(number)];
  const bool of_start = static_cast<std::size_t>(token.count) > token.clocks.size();
  --token.count;
  if (of_start || token.clocks.empty()) return;
  lane.clock.join(token.clocks.front());
  token.clocks.pop_front();
}

void Machine::raise(const Position& lane, int number) {
  RankState& rank = world_.ranks[static_cast<std::size_t>(lane.rank)];
  TokenState& token = rank.tokens[static_cast<std::size_t>(number)];
  ++token.count;
  if (!places_.empty()) token.clocks.push_back(lane.clock);
  if (!token.awaiter_waits) return;
  token.awaiter_waits = false;
  wake(token.awaiter);
}

/// Brings a source into the accumulator: as it is, or folded in as the right operand.
bool Machine::source(Position& lane, const Stage& stage, Channel* channel) {
  std::vector<Value>& values = sourced_ ? operand_ : accumulator_;
  if (values.size() < chunks_) values.resize(chunks_);
  if (!(channel == nullptr ? read(lane, stage, values.data())
                           : receive(lane, stage, *channel, values.data())))
    return false;
  if (sourced_)
    fold_in(lane);
  else
    plain_read_ = channel == nullptr && (stage.flags & Stage::premul) == 0;
  sourced_ = true;
  return true;
}

void Machine::fold_in(const Position& lane) {
  plain_read_ = false;
  unrounded_ = true;
  for (std::size_t i = 0; i < chunks_; ++i) {
    Value& left = accumulator_[i];
    const Value& right = operand_[i];
    if (left.chunk != right.chunk)
      note(Fault::wrong_value, lane,
           fmt::format("folds chunk {} into chunk {}", right.chunk, left.chunk));
    if (left.scaled || right.scaled)
      note(Fault::wrong_value, lane, "folds a value that has been divided already");
    const std::uint64_t left_order = left.order;
    fold(left, right);
    if (book_ != nullptr) book_->folded(left, left_order, right.order, at(lane));
  }
}

void Machine::divide(const Position& lane) {
  plain_read_ = false;
  unrounded_ = true;
  for (std::size_t i = 0; i < chunks_; ++i) {
    Value& value = accumulator_[i];
    if (value.scaled)
      note(Fault::wrong_value, lane, "divides a value that has been divided already");
    const std::uint64_t order = value.order;
    scale(value);
    if (book_ != nullptr) book_->changed(value, order, '/');
  }
}

void Machine::round_accumulator() {
  if (!unrounded_) return;
  unrounded_ = false;
  if (world_.plan->collective.rank_order) return;
  for (std::size_t i = 0; i < chunks_; ++i) {
    const std::uint64_t order = accumulator_[i].order;
    round_to_carry(accumulator_[i]);
    if (book_ != nullptr) book_->changed(accumulator_[i], order, '\'');
  }
}

bool Machine::write(const Position& lane, Span span) {
  if (!equal_or_apart(lane, span)) return false;
  if (outgrows(span))
    return malformed(lane,
                     "writes sums over the shorter elements of scratch that they are made of; "
                     "give them chunks of their own");
  round_accumulator();
  if (!world_.ranks[static_cast<std::size_t>(lane.rank)].open_windows.empty())
    check_windows(lane, span);
  store(lane, span, accumulator_.data());
  written_spans_.push_back(span);
  return true;
}

void Machine::transmit(const Position& lane, const Stage& stage, Channel& channel) {
  if (stage.verb == Verb::put) ++channel.filled;
  round_accumulator();
  channel.widen(chunks_);
  Channel::Slot& slot = channel.slots[static_cast<std::size_t>(channel.next_send)];
  copy(accumulator_.data(), chunks_, channel.values_of(channel.next_send));
  slot.chunks = static_cast<int>(chunks_);
  slot.put = stage.verb == Verb::put;
  if (world_.options.references) {
    refer(slot);
    lend(lane, channel);
  }
  if (!places_.empty()) slot.clock = lane.clock;
  channel.next_send = channel.after(channel.next_send);
  ++channel.full;
  if (channel.receiver_waits) {
    channel.receiver_waits = false;
    wake(channel.receiver);
  }
}

/// Which memory the message may refer to: what the step wrote, or all that it read if it did
/// nothing with it. A plan may keep the input of a call in place out of this.
void Machine::refer(Channel::Slot& slot) const {
  slot.references.clear();
  if (slot.put) return;
  if (!written_spans_.empty())
    slot.references = written_spans_;
  else if (plain_read_ && (read_spans_[0].buffer != Buffer::input || !world_.options.in_place ||
                           world_.plan->lends_in_place))
    slot.references = read_spans_;
}

void Machine::lend(const Position& lane, Channel& channel) {
  RankState& rank = world_.ranks[static_cast<std::size_t>(lane.rank)];
  for (const Span& span : channel.slots[static_cast<std::size_t>(channel.next_send)].references)
    if (span.first < span.last)
      rank.loans.push_back({overlaid(rank, span), &channel, channel.next_send});
}

/// The message that is received now refers to its sender's memory no more.
void Machine::give_back(Channel& channel) {
  RankState& rank = world_.ranks[static_cast<std::size_t>(channel.from)];
  std::erase_if(rank.loans, [&](const Loan& loan) {
    return loan.channel == &channel && loan.slot == channel.next_recv;
  });
  if (!std::exchange(rank.loan_awaited, false)) return;
  for (int i = 0; i < rank.lanes; ++i) wake(rank.first_lane + i);
}

bool Machine::receive(const Position& lane, const Stage& stage, Channel& channel, Value* values) {
  Channel::Slot& slot = channel.slots[static_cast<std::size_t>(channel.next_recv)];
  if (slot.put != (stage.verb == Verb::take))
    return stop(Fault::pairing, lane,
                slot.put ? fmt::format("receives where rank {} put", channel.from)
                         : fmt::format("takes where rank {} sent", channel.from));
  copy(channel.values_of(channel.next_recv), static_cast<std::size_t>(slot.chunks), values);
  if (slot.put) {
    take_back(lane, channel, values);
  } else if (!slot.references.empty()) {
    give_back(channel);
  }
  if (!places_.empty()) slot.clock = lane.clock;
  channel.next_recv = channel.after(channel.next_recv);
  --channel.full;
  if (channel.sender_waits) {
    channel.sender_waits = false;
    wake(channel.sender);
  }
  return true;
}

void Machine::grant(const Position& lane, const Stage& stage, Channel& channel) {
  RankState& rank = world_.ranks[static_cast<std::size_t>(lane.rank)];
  check_windows(lane, stage.span());
  touch(lane, stage.span(), Access::write);
  rank.open_windows.push_back(overlaid(rank, stage.span()));
  channel.windows.push_back({stage.span(), lane.clock});
  if (channel.sender_waits) {
    channel.sender_waits = false;
    wake(channel.sender);
  }
}

void Machine::take_back(const Position& lane, Channel& channel, Value* values) {
  RankState& rank = world_.ranks[static_cast<std::size_t>(lane.rank)];
  const Span span = channel.windows.front().span;
  channel.windows.erase(channel.windows.begin());
  --channel.filled;
  const auto open =
      std::find(rank.open_windows.begin(), rank.open_windows.end(), overlaid(rank, span));
  rank.open_windows.erase(open);
  store(lane, span, values);
  read_spans_.push_back(span);
}

}  // namespace khoro::proof
