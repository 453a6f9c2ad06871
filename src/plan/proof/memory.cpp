// SPDX-License-Identifier: Apache-2.0
// The memory of the ranks: what is in it, and who touches it.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "plan/proof/machine.h"
#include "plan/proof/stuck.h"

namespace khoro::proof {
namespace {

bool meet(const Span& a, const Span& b) noexcept {
  return a.buffer == b.buffer && a.first < b.last && b.first < a.last;
}

std::string text(const Span& span) {
  if (span.last == span.first + 1) return fmt::format("{}[{}]", name(span.buffer), span.first);
  return fmt::format("{}[{}:{}]", name(span.buffer), span.first, span.last);
}

}  // namespace

/// The same memory under the name of the output, if it is part of both.
Span Machine::overlaid(const RankState& rank, Span span) const {
  if (span.buffer != Buffer::input || !world_.options.in_place) return span;
  return {Buffer::output, span.first + rank.shift, span.last + rank.shift};
}

/// Null where nothing but the caller's input lies, or where nothing has been written yet.
Value* Machine::cell(RankState& rank, Buffer buffer, int chunk) {
  if (buffer == Buffer::input) {
    if (!world_.options.in_place) return nullptr;
    chunk += rank.shift;
  }
  std::vector<Value>& values = buffer == Buffer::scratch ? rank.scratch : rank.output;
  if (chunk < 0 || static_cast<std::size_t>(chunk) >= values.size()) return nullptr;
  return &values[static_cast<std::size_t>(chunk)];
}

/// The chunk of its input that lies there before the rank writes: in place also under its output.
std::optional<int> Machine::input_at(int rank, Buffer buffer, int chunk) const {
  if (buffer == Buffer::input) return chunk;
  const Collective& collective = world_.plan->collective;
  if (buffer == Buffer::scratch || !world_.options.in_place || !collective.has_input(rank))
    return std::nullopt;
  return collective.in_place_input(rank, chunk, world_.plan->chunks);
}

/// False if an executor would not know how much to read.
bool Machine::read(const Position& lane, const Stage& stage, Value* values) {
  RankState& rank = world_.ranks[static_cast<std::size_t>(lane.rank)];
  read_spans_.push_back(stage.span());
  if (!rank.open_windows.empty()) check_windows(lane, stage.span());
  if (lane.tracked) touch(lane, stage.span(), Access::read);
  for (int chunk = stage.first; chunk < stage.last; ++chunk) {
    Value& value = values[chunk - stage.first];
    const Value* written = cell(rank, stage.buffer, chunk);
    if (written != nullptr && !written->defined) written = nullptr;
    if (const std::optional<int> input = input_at(lane.rank, stage.buffer, chunk)) {
      value = contribution(lane.rank, *input);
      if (book_ != nullptr) book_->leaf(value, lane.rank);
      if (stage.buffer == Buffer::input && written != nullptr && written->sum != value.sum)
        note(Fault::input_written, lane,
             fmt::format("reads input[{}], overwritten in place through output[{}]", chunk,
                         chunk + rank.shift));
    } else if (written == nullptr) {
      const std::string unwritten =
          fmt::format("reads {}[{}], where nothing has been written", name(stage.buffer), chunk);
      if (stage.buffer == Buffer::scratch) return stop(Fault::wrong_value, lane, unwritten);
      note(Fault::wrong_value, lane, unwritten);
      value = Value{};
    }
    if (written != nullptr) value = *written;
    if (stage.buffer == Buffer::scratch && !value.carry) narrow_spans_.push_back(stage.span());
    if ((stage.flags & Stage::premul) != 0) {
      premultiplied_ = unrounded_ = true;
      const std::uint64_t order = value.order;
      premultiply(value, lane.rank);
      if (book_ != nullptr) book_->changed(value, order, '*');
    }
  }
  return true;
}

/// Puts values into memory; what is written to the output is rounded for good.
void Machine::store(const Position& lane, Span span, Value* values) {
  RankState& rank = world_.ranks[static_cast<std::size_t>(lane.rank)];
  if (lane.tracked) touch(lane, span, Access::write);
  if (span.buffer == Buffer::scratch && rank.scratch.size() < static_cast<std::size_t>(span.last))
    rank.scratch.resize(static_cast<std::size_t>(span.last));
  for (int chunk = span.first; chunk < span.last; ++chunk) {
    Value& value = values[chunk - span.first];
    value.defined = true;
    if (span.buffer == Buffer::output) {
      if (book_ != nullptr) book_->wrote(lane.rank, chunk, at(lane));
      if (size_class(value.chunk) != size_class(chunk))
        note(Fault::wrong_value, lane,
             fmt::format("writes chunk {} to output[{}]", value.chunk, chunk));
      const std::uint64_t order = value.order;
      round_to_dtype(value);
      if (book_ != nullptr && order != value.order) book_->changed(value, order, '"');
    }
    if (span.buffer == Buffer::scratch && span.last - span.first > 1 &&
        size_class(value.chunk) != size_class(chunk))
      note(
          Fault::wrong_value, lane,
          fmt::format("writes chunk {} to scratch[{}], one of several that are as long as those of "
                      "the whole vector",
                      value.chunk, chunk));
    *cell(rank, span.buffer, chunk) = value;
  }
}

/// A value that is written must lie where it was read, or quite elsewhere.
bool Machine::equal_or_apart(const Position& lane, Span span) {
  const RankState& rank = world_.ranks[static_cast<std::size_t>(lane.rank)];
  for (const Span& other : read_spans_) {
    const Span read = overlaid(rank, other);
    if (meet(read, span) && read.first != span.first)
      return malformed(
          lane, fmt::format("writes {}, part of which is read as {}", text(span), text(other)));
  }
  for (const Span& other : written_spans_)
    if (meet(other, span))
      return malformed(lane,
                       fmt::format("writes {} and {}, which overlap", text(other), text(span)));
  return true;
}

/// A sum in the carry type, which may be longer than the dtype, would overwrite what is not read.
bool Machine::outgrows(Span span) const {
  if (narrow_spans_.empty() || span.buffer != Buffer::scratch) return false;
  const bool longer =
      std::any_of(accumulator_.begin(), accumulator_.begin() + static_cast<std::ptrdiff_t>(chunks_),
                  [](const Value& value) { return value.carry; });
  return longer && std::any_of(narrow_spans_.begin(), narrow_spans_.end(),
                               [&](const Span& narrow) { return meet(narrow, span); });
}

/// What has been lent is not written before it is back.
bool Machine::lacks_loan(Position& lane, const Stage& stage) {
  if (stage.verb != Verb::write && stage.verb != Verb::offer) return false;
  RankState& rank = world_.ranks[static_cast<std::size_t>(lane.rank)];
  for (const Loan& loan : rank.loans) {
    if (!meet(loan.span, overlaid(rank, stage.span()))) continue;
    lane.lacks = Lack::loan;
    lane.channel = loan.channel;
    rank.loan_awaited = true;
    return true;
  }
  return false;
}

/// What has been offered belongs to the sender of the channel until it is taken back.
void Machine::check_windows(const Position& lane, Span span) {
  const RankState& rank = world_.ranks[static_cast<std::size_t>(lane.rank)];
  if (rank.open_windows.empty()) return;
  for (const Span& window : rank.open_windows)
    if (meet(window, overlaid(rank, span)))
      note(Fault::race, lane,
           fmt::format("touches {} while the window {} is open", text(span), text(window)));
}

History* Machine::history(RankState& rank, Buffer buffer, int chunk) {
  if (buffer == Buffer::scratch) {
    const auto index = static_cast<std::size_t>(chunk);
    if (rank.scratch_history.size() <= index) rank.scratch_history.resize(index + 1);
    return &rank.scratch_history[index];
  }
  if (buffer == Buffer::input) {
    if (!world_.options.in_place) return nullptr;
    chunk += rank.shift;
  }
  if (chunk < 0 || static_cast<std::size_t>(chunk) >= rank.output_history.size()) return nullptr;
  return &rank.output_history[static_cast<std::size_t>(chunk)];
}

void Machine::touch(const Position& lane, Span span, Access access) {
  if (!lane.tracked) return;
  RankState& rank = world_.ranks[static_cast<std::size_t>(lane.rank)];
  for (int chunk = span.first; chunk < span.last; ++chunk) {
    History* const history = this->history(rank, span.buffer, chunk);
    if (history == nullptr) continue;
    const std::optional<Epoch> other = access == Access::write ? history->write(now_, lane.clock)
                                                               : history->read(now_, lane.clock);
    if (!other) continue;
    const Span touched{span.buffer, chunk, chunk + 1};
    race(lane, *other, (access == Access::write ? "writes " : "reads ") + text(touched));
  }
}

/// Chunks of one class have the same number of elements in every tile of every call.
int Machine::size_class(int chunk) const noexcept { return chunk % block_; }

void Machine::race(const Position& lane, Epoch other, const std::string& what) {
  // What was wrong before may be so in this order only: then the race is the cause of it.
  if (verdict_.found && verdict_.found->fault == Fault::race) return;
  const StepAt first = at(other);
  const StepAt second = at(lane);
  Outcome outcome;
  if (verdict_.found) outcome = std::move(verdict_.found->outcome);
  verdict_.found.reset();
  note(Fault::race, lane,
       fmt::format("{}, and nothing orders it with {}", what, place_of(*world_.plan, first)));
  verdict_.found->outcome = std::move(outcome);
  verdict_.found->witness = {first, second};
}

}  // namespace khoro::proof
