// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a firing step does to its data, shared out among a team.

#include "base/device.h"
#include "executor/lane_state.h"

namespace khoro::verbs {

/// An engine that has a whole team do the arithmetic of a segment, in an order of its own.
template <class Engine, class Team>
concept FoldsByTeam = requires(const Engine& engine, const Team& team, const FoldRequest& request) {
  engine.fold(team, request);
};

/// Goes on by `elements`, which end at or before the end of the piece.
template <class Engine>
KHORO_HD void go_on(const Engine& engine, Run& run, std::uint64_t elements) {
  run.data += elements << engine.shift(run.form);
  run.left -= elements;
  while (run.left == 0 && run.next < run.last) engine.next_piece(run);
}

/// Elements up to the first end of a piece of any source or sink.
template <class Engine>
KHORO_HD std::uint64_t segment(const Engine&, const LaneState& lane, std::uint64_t limit) {
  for (std::uint32_t k = 0; k < lane.move.source_count; ++k)
    if (lane.sources[k].run.left < limit) limit = lane.sources[k].run.left;
  for (std::uint32_t k = 0; k < lane.move.sink_count; ++k)
    if (lane.sinks[k].kind != Sink::Kind::reference && lane.sinks[k].run.left < limit)
      limit = lane.sinks[k].run.left;
  return limit;
}

/// Moves the leader's runs and operands on.
template <class Engine>
KHORO_HD void next_segment(const Engine& engine, LaneState& lane, std::uint64_t left) {
  const std::uint64_t passed = lane.move.segment;
  for (std::uint32_t k = 0; k < lane.move.source_count; ++k) {
    go_on(engine, lane.sources[k].run, passed);
    lane.operands[k].data = lane.sources[k].run.data;
    lane.operands[k].form = lane.sources[k].run.form;
  }
  for (std::uint32_t k = 0; k < lane.move.sink_count; ++k)
    if (lane.sinks[k].kind != Sink::Kind::reference) go_on(engine, lane.sinks[k].run, passed);
  lane.move.segment = segment(engine, lane, left);
}

/// A member does all of it for the same few elements, so that they are still in its cache, and no
/// member reads what another wrote.
template <class Engine, class Team>
KHORO_HD void fold_by_members(const Engine& engine, const Team& team, const LaneState& lane) {
  const Move& move = lane.move;
  if (team.size() == 1 && move.sink_count == 1) {
    // Nothing to share out, and no second sink that would find the result in the cache.
    const Sink& sink = lane.sinks[0];
    if (sink.kind != Sink::Kind::reference)
      engine.fold(sink.run.data, sink.run.form, lane.operands, move.source_count, 0, move.segment,
                  move.divisor);
    return;
  }
  const std::uint64_t grain = engine.grain();
  for (std::uint64_t first = team.rank() * grain; first < move.segment;
       first += team.size() * grain) {
    const std::uint64_t count = move.segment - first < grain ? move.segment - first : grain;
    Operand previous;
    for (std::uint32_t k = 0; k < move.sink_count; ++k) {
      const Sink& sink = lane.sinks[k];
      if (sink.kind == Sink::Kind::reference) continue;
      std::byte* const to = sink.run.data;
      if (previous.data == nullptr)
        engine.fold(to, sink.run.form, lane.operands, move.source_count, first, count,
                    move.divisor);
      else
        engine.fold(to, sink.run.form, &previous, 1, first, count, 0);
      previous = {to, sink.run.form};
    }
  }
}

/// Folds the sources of a segment into the first sink, and copies that on to the others.
template <class Engine, class Team>
KHORO_HD void fold(const Engine& engine, const Team& team, const LaneState& lane) {
  const Move& move = lane.move;
  if constexpr (FoldsByTeam<Engine, Team>) {
    engine.fold(team, FoldRequest{lane.operands, lane.sinks, move.source_count, move.sink_count,
                                  move.segment, move.divisor});
  } else {
    fold_by_members(engine, team, lane);
  }
}

/// Copies a piece of a window that was filled through a slot.
template <class Engine, class Team>
KHORO_HD void settle(const Engine& engine, const Team& team, const Run& to, const Operand& slot,
                     std::uint64_t elements) {
  if constexpr (FoldsByTeam<Engine, Team>) {
    Sink sink;
    sink.run = to;
    engine.fold(team, FoldRequest{&slot, &sink, 1, 1, elements, 0});
  } else {
    const std::uint64_t share = (elements + team.size() - 1) / team.size();
    const std::uint64_t first = team.rank() * share < elements ? team.rank() * share : elements;
    const std::uint64_t count = elements - first < share ? elements - first : share;
    engine.fold(to.data, to.form, &slot, 1, first, count, 0);
  }
}

/// Copies windows that were filled through a slot to where they belong.
template <class Engine, class Team>
KHORO_HD void settle(const Engine& engine, const Team& team, const LaneState& lane) {
  for (std::uint32_t k = 0; k < lane.move.source_count; ++k) {
    const Source& source = lane.sources[k];
    if (source.slot == nullptr) continue;
    Operand slot{source.slot, source.slot_form};
    Run run = source.run;
    for (std::uint64_t left = lane.move.elements; left > 0;) {
      const std::uint64_t piece = run.left < left ? run.left : left;
      settle(engine, team, run, slot, piece);
      slot.data += piece << engine.shift(slot.form);
      left -= piece;
      go_on(engine, run, piece);
    }
  }
  team.sync();
}

/// All the data of a step that fires.
template <class Engine, class Team>
KHORO_HD void move(const Engine& engine, const Team& team, LaneState& lane) {
  if (lane.move.elements == 0) return;
  if (lane.move.settles) settle(engine, team, lane);
  if (lane.move.sink_count == 0) return;
  fold(engine, team, lane);
  if (!lane.move.pieces) return;
  for (std::uint64_t left = lane.move.elements - lane.move.segment; left > 0;) {
    team.sync();
    if (team.rank() == 0) next_segment(engine, lane, left);
    team.sync();
    fold(engine, team, lane);
    left -= lane.move.segment;
  }
}

}  // namespace khoro::verbs
