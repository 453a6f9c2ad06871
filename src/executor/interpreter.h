// SPDX-License-Identifier: Apache-2.0
#pragma once

// The only loop over the steps of a lane, for host and device.
//
// An Engine is what the interpreter knows of the world:
//   stage(i), port_of(i), ranks(), digest(port), fail(status)  the image and the call
//   tiles(), stride()                           the tiles of the call, of which a lane that begins
//                                               with tile n does n, n + stride(), ...
//   skips(i, tile)                              whether the stage's step has nothing to do
//   shift(form)                                 log2 of an element's bytes
//   carry_form()                                Form::dtype where the carry type is the dtype
//   room()                                      elements that fit a chunk of scratch
//   piece(run, stage, buffer, chunk, tile)      a Run of one chunk; next_piece(run) the one after
//   length(chunk, tile)                         elements of a chunk of the whole vector
//   hold(chunk, elements, form)                 what a chunk of scratch holds from now on
//   holds(first, last)                          whether something was written to each of the chunks
//   take_token(t), give_token(t)                its counter, down if it is not 0, and up
//   lands(stage), aim(port, data, bytes)        whether a step only copies what it receives, and
//                                               where the message may therefore come straight
//   observe, intact, release, acquire, payload_limit     the ends, by port
//   publish, window, publish_put
//   lends_from(stage), lends(), lent(data, bytes)        references, and those not yet returned
//   may_lend(port, move, bytes), lend(port, head, data)
//   offer(port, window, stage, tile), oldest_window(port), window_taken(port)
//   grain(), fold(...)                           the arithmetic, of a member or a whole team
// The leader of the team calls all but these two, which any member may. An engine may
// (MovesWithTeam) have before_move() and after_move(), which all members call around the move of a
// step that fires, and robbed(): what the step has read did not come.

#include <concepts>

#include "executor/lane_state.h"
#include "executor/verbs.h"
#include "transport/channel.h"

namespace khoro {

/// Gets the steps of a lane ready, one stage after the other, and concludes them. What is ready
/// stays ready (messages until they are released, room until it is published, tokens because they
/// have one awaiting lane), so a lane goes on at the stage that it waited at.
template <class Engine>
class Preparation {
 public:
  KHORO_HD Preparation(Engine& engine, LaneState& lane) : engine_(engine), lane_(lane) {}

  KHORO_HD Outlook until_fire() {
    if (lane_.first == lane_.last || !find_step()) return Outlook::ends;
    for (;;) {
      const Stage& stage = engine_.stage(lane_.stage);
      const Outlook outlook = prepare(stage);
      if (outlook != Outlook::fires) return outlook;
      ++lane_.stage;
      if (stage.flags & Stage::ends) break;
    }
    lane_.move.segment = lane_.move.pieces ? verbs::segment(engine_, lane_, lane_.move.elements)
                                           : lane_.move.elements;
    return Outlook::fires;
  }

  /// After the data has moved: messages first, they are what peers wait for. False if some of it
  /// must not be used.
  KHORO_HD bool conclude() {
    Move& move = lane_.move;
    if (move.borrows && !all_intact()) return false;
    for (std::uint32_t k = 0; k < move.sink_count; ++k) conclude(lane_.sinks[k]);
    for (std::uint32_t k = 0; k < move.source_count; ++k) {
      const Source& source = lane_.sources[k];
      if (source.verb == Verb::read) continue;
      if (source.verb == Verb::take) engine_.window_taken(source.port);
      engine_.release(source.port);
    }
    if (move.signals >= 0) engine_.give_token(move.signals);
    move.clear();
    return true;
  }

 private:
  KHORO_HD bool all_intact() {
    for (std::uint32_t k = 0; k < lane_.move.source_count; ++k) {
      const Source& source = lane_.sources[k];
      if (source.verb != Verb::read && !engine_.intact(source.port)) return false;
    }
    return true;
  }

  /// Goes on to a step that has something to do; false at the end of the last tile.
  KHORO_HD bool find_step() {
    for (;;) {
      if (lane_.stage == lane_.last) {
        lane_.tile += engine_.stride();
        if (lane_.tile >= engine_.tiles()) {
          lane_.tile = engine_.tiles();
          return false;
        }
        lane_.stage = lane_.first;
      }
      if (!engine_.skips(lane_.stage, lane_.tile)) return true;
      while (!(engine_.stage(lane_.stage++).flags & Stage::ends)) {
      }
    }
  }

  KHORO_HD Outlook prepare(const Stage& stage) {
    switch (stage.verb) {
      case Verb::await:
        return engine_.take_token(stage.token()) ? Outlook::fires : Outlook::waits;
      case Verb::offer:
        return offer(stage);
      case Verb::read:
        return read(stage);
      case Verb::recv:
      case Verb::take:
        return receive(stage);
      case Verb::scale:
        lane_.move.divisor = engine_.ranks();
        lane_.move.form = engine_.carry_form();
        lane_.move.lendable = nullptr;
        return Outlook::fires;
      case Verb::write:
        return write(stage);
      case Verb::send:
        return send();
      case Verb::put:
        return put();
      case Verb::signal:
        lane_.move.signals = stage.token();
        return Outlook::fires;
    }
    return Outlook::failed;
  }

  KHORO_HD Outlook fail(Status status) {
    engine_.fail(status);
    return Outlook::failed;
  }

  KHORO_HD std::uint32_t port() const { return engine_.port_of(lane_.stage); }

  KHORO_HD std::uint64_t bytes(std::uint64_t elements, Form form) const {
    return elements << engine_.shift(form);
  }

  /// Every source and sink of a step has as many elements as the others.
  KHORO_HD bool agrees(std::uint64_t elements) {
    Move& move = lane_.move;
    if (!move.counted) {
      move.elements = elements;
      move.counted = true;
    }
    return move.elements == elements;
  }

  /// What the pieces of a span come to.
  struct Whole {
    std::uint64_t elements = 0;
    Form form = Form::dtype;
    bool contiguous = true;
  };

  /// The memory of a span in a tile. Runs, sources and sinks are filled where they lie: a copy of
  /// what was just written field by field would wait for every field.
  KHORO_HD Whole whole(Run& run, const Stage& stage, std::uint32_t stage_index,
                       std::uint64_t tile) const {
    if (stage.last - stage.first != 1) {
      run.form = Form::dtype;
      run.fresh = false;
      return many(run, stage, tile);
    }
    engine_.piece(run, stage_index, stage.buffer, stage.first, tile);
    return {run.left, run.form, true};
  }

  KHORO_HD Whole many(Run& run, const Stage& stage, std::uint64_t tile) const {
    Whole whole;
    run.buffer = stage.buffer;
    run.tile = tile;
    run.next = stage.first;
    run.last = stage.last;
    run.left = 0;
    run.data = nullptr;
    Run piece = run;
    const std::byte* end = nullptr;
    for (std::int32_t chunk = stage.first; chunk < stage.last; ++chunk) {
      engine_.next_piece(piece);
      if (piece.left == 0) continue;
      if (whole.elements > 0 && (piece.data != end || piece.form != whole.form))
        whole.contiguous = false;
      if (piece.form == Form::carry || whole.elements == 0) whole.form = piece.form;
      whole.elements += piece.left;
      end = piece.data + bytes(piece.left, piece.form);
    }
    while (run.left == 0 && run.next < run.last) engine_.next_piece(run);
    if (whole.contiguous) {
      run.left = whole.elements;
      run.next = run.last;
    }
    return whole;
  }

  KHORO_HD Source& new_source(Verb verb) {
    Source& source = lane_.sources[lane_.move.source_count];
    source.verb = verb;
    source.slot = nullptr;
    return source;
  }

  KHORO_HD void add_source(const Stage& stage, const Source& source, Form form) {
    Move& move = lane_.move;
    Operand& operand = lane_.operands[move.source_count++];
    operand.data = source.run.data;
    operand.form = source.run.form;
    operand.premul = (stage.flags & Stage::premul) != 0;
    const bool changes = (stage.flags & (Stage::reduces | Stage::premul)) != 0;
    move.form = changes ? engine_.carry_form() : form;
  }

  KHORO_HD Outlook read(const Stage& stage) {
    if (stage.buffer == Buffer::scratch && !engine_.holds(stage.first, stage.last))
      return fail(Status::corrupt);
    Source& source = new_source(Verb::read);
    const Whole span = whole(source.run, stage, lane_.stage, lane_.tile);
    if (!agrees(span.elements)) return fail(Status::corrupt);
    Move& move = lane_.move;
    if (!span.contiguous) move.pieces = true;
    const bool lendable = move.source_count == 0 && span.contiguous &&
                          (stage.flags & Stage::premul) == 0 && engine_.lends_from(stage);
    move.lendable = lendable ? source.run.data : nullptr;
    move.written = false;
    add_source(stage, source, span.form);
    return Outlook::fires;
  }

  /// Has the next message come straight to where the step would copy it.
  KHORO_HD void aim() {
    Run run;
    const std::uint32_t target = lane_.stage + 1;
    const Whole span = whole(run, engine_.stage(target), target, lane_.tile);
    if (!span.contiguous || (engine_.lends() && is_lent(run, span.elements))) return;
    engine_.aim(port(), run.data, bytes(span.elements, Form::dtype));
  }

  KHORO_HD Outlook receive(const Stage& stage) {
    if (engine_.lands(lane_.stage)) aim();
    const Observed seen = engine_.observe(port());
    if (seen.status != Status::ok) return fail(seen.status);
    if (seen.message == nullptr) return Outlook::waits;
    const MessageHead& head = seen.message->head;
    const Form form = head.form == Form::carry ? engine_.carry_form() : Form::dtype;
    const std::uint64_t elements = head.bytes >> engine_.shift(form);
    if (bytes(elements, form) != head.bytes || !agrees(elements)) return fail(Status::corrupt);
    Source& source = new_source(stage.verb);
    source.port = port();
    source.run.data = const_cast<std::byte*>(seen.message->data);  // read only, as a source
    source.run.left = elements;
    source.run.next = source.run.last = 0;
    source.run.form = form;
    if (stage.verb == Verb::take && !fits_window(*seen.message, form, source))
      return fail(Status::corrupt);
    lane_.move.lendable = nullptr;
    lane_.move.borrows |= seen.message->by_reference;
    add_source(stage, source, source.run.form);
    return Outlook::fires;
  }

  /// Turns the message that fills the oldest window into a source that reads the window.
  KHORO_HD bool fits_window(const Message& message, Form form, Source& source) {
    const auto window = engine_.oldest_window(source.port);
    if (!window.open) return false;
    const std::uint64_t elements = source.run.left;
    const Stage& offered = engine_.stage(window.stage);
    if (offered.buffer == Buffer::scratch) {
      if (elements > engine_.room()) return false;
      engine_.hold(offered.first, elements, form);
    }
    const Whole span = whole(source.run, offered, window.stage, window.tile);
    if (span.elements != elements) return false;
    if (!span.contiguous) lane_.move.pieces = true;
    if (elements == 0) return true;
    const bool in_place = message.by_reference && message.data == source.run.data;
    if (in_place) return span.form == form;
    source.slot = message.data;
    source.slot_form = form;
    lane_.move.settles = true;
    return true;
  }

  KHORO_HD Outlook write(const Stage& stage) {
    Move& move = lane_.move;
    Sink& sink = lane_.sinks[move.sink_count];
    if (stage.buffer == Buffer::scratch && stage.last - stage.first == 1) {
      if (move.elements > engine_.room()) return fail(Status::corrupt);
      engine_.piece(sink.run, lane_.stage, stage.buffer, stage.first, lane_.tile);
      sink.run.left = move.elements;
      sink.run.form = move.form;
      move.lendable = engine_.lends_from(stage) ? sink.run.data : nullptr;
    } else {
      const Whole span = target(sink.run, stage);
      if (!agrees(span.elements)) return fail(Status::corrupt);
      if (!span.contiguous) move.pieces = true;
      move.form = sink.run.form;
      move.lendable = span.contiguous && engine_.lends_from(stage) ? sink.run.data : nullptr;
    }
    move.written = move.source_count > 1 || sink.run.data != lane_.operands[0].data;
    if (engine_.lends() && is_lent(sink.run, move.elements)) return Outlook::waits;
    sink.kind = Sink::Kind::write;
    sink.chunk = stage.first;
    ++move.sink_count;
    return Outlook::fires;
  }

  /// The memory of a span of output, or of several chunks of scratch.
  KHORO_HD Whole target(Run& run, const Stage& stage) const {
    if (stage.buffer != Buffer::scratch) return whole(run, stage, lane_.stage, lane_.tile);
    run.form = lane_.move.form;
    run.fresh = true;
    return many(run, stage, lane_.tile);
  }

  KHORO_HD bool is_lent(Run run, std::uint64_t elements) {
    for (std::uint64_t left = elements; left > 0;) {
      const std::uint64_t piece = run.left < left ? run.left : left;
      if (engine_.lent(run.data, bytes(piece, run.form))) return true;
      left -= piece;
      verbs::go_on(engine_, run, piece);
    }
    return false;
  }

  /// The next sink, for a message of the value as it stands.
  KHORO_HD Sink& new_message() {
    const Move& move = lane_.move;
    Sink& sink = lane_.sinks[move.sink_count];
    sink.port = port();
    sink.bytes = bytes(move.elements, move.form);
    sink.run.left = move.elements;
    sink.run.next = sink.run.last = 0;
    sink.run.form = move.form;
    return sink;
  }

  KHORO_HD Outlook send() {
    Move& move = lane_.move;
    Sink& sink = new_message();
    // No message of a plan is wider than a slot, whether it goes by a slot or not.
    if (sink.bytes > engine_.payload_limit(sink.port)) return fail(Status::corrupt);
    if (move.lendable != nullptr && engine_.may_lend(sink.port, move, sink.bytes)) {
      if (engine_.acquire(sink.port, 0) == nullptr) return Outlook::waits;
      sink.kind = Sink::Kind::reference;
      sink.run.data = const_cast<std::byte*>(move.lendable);
    } else {
      std::byte* const room = engine_.acquire(sink.port, sink.bytes);
      if (room == nullptr) return Outlook::waits;
      sink.kind = Sink::Kind::send;
      sink.run.data = room;
    }
    ++move.sink_count;
    return Outlook::fires;
  }

  KHORO_HD Outlook put() {
    const Window* const window = engine_.window(port());
    if (window == nullptr) return Outlook::waits;
    Sink& sink = new_message();
    // A window in output takes the dtype alone.
    if (sink.bytes > window->bytes) {
      sink.run.form = Form::dtype;
      sink.bytes = bytes(lane_.move.elements, Form::dtype);
    }
    const bool direct = window->data != nullptr;
    if (sink.bytes > (direct ? window->bytes : engine_.payload_limit(sink.port)))
      return fail(Status::corrupt);
    std::byte* const slot = engine_.acquire(sink.port, direct ? 0 : sink.bytes);
    if (slot == nullptr) return Outlook::waits;
    sink.kind = Sink::Kind::put;
    sink.run.data = direct ? window->data : slot;
    ++lane_.move.sink_count;
    return Outlook::fires;
  }

  KHORO_HD Outlook offer(const Stage& stage) {
    Run run;
    Whole span;
    if (stage.buffer == Buffer::scratch) {
      engine_.piece(run, lane_.stage, stage.buffer, stage.first, lane_.tile);
      run.form = engine_.carry_form();
      run.left = span.elements = engine_.room();
    } else {
      span = whole(run, stage, lane_.stage, lane_.tile);
    }
    if (engine_.lends() && is_lent(run, span.elements)) return Outlook::waits;
    const Window window{span.contiguous ? run.data : nullptr, bytes(span.elements, run.form)};
    if (!engine_.offer(port(), window, lane_.stage, lane_.tile)) return Outlook::waits;
    return Outlook::fires;
  }

  KHORO_HD void conclude(const Sink& sink) {
    if (sink.kind == Sink::Kind::write) {
      if (sink.run.buffer == Buffer::scratch) hold(sink);
      return;
    }
    const MessageHead head{engine_.digest(sink.port), sink.bytes, sink.run.form};
    switch (sink.kind) {
      case Sink::Kind::write:
        break;
      case Sink::Kind::send:
        engine_.publish(sink.port, head);
        break;
      case Sink::Kind::reference:
        engine_.lend(sink.port, head, sink.run.data);
        break;
      case Sink::Kind::put:
        engine_.publish_put(sink.port, head);
        break;
    }
  }

  KHORO_HD void hold(const Sink& sink) {
    const Run& run = sink.run;
    if (run.last - sink.chunk == 1) return engine_.hold(sink.chunk, lane_.move.elements, run.form);
    for (std::int32_t chunk = sink.chunk; chunk < run.last; ++chunk)
      engine_.hold(chunk, engine_.length(chunk, run.tile), run.form);
  }

  Engine& engine_;
  LaneState& lane_;
};

template <class Engine, class Team>
concept MovesWithTeam = requires(Engine& engine, const Team& team, const LaneState& lane) {
  engine.before_move(team, lane);
  engine.after_move(team, lane);
  { engine.robbed() } -> std::same_as<bool>;
};

/// The move of a step, by all members. False if the step must never end.
template <class Engine, class Team>
KHORO_HD bool move_step(Engine& engine, const Team& team, LaneState& lane) {
  if constexpr (MovesWithTeam<Engine, Team>) {
    engine.before_move(team, lane);
    verbs::move(engine, team, lane);
    engine.after_move(team, lane);
    team.sync();
    return !engine.robbed();
  } else {
    verbs::move(engine, team, lane);
    team.sync();
    return true;
  }
}

/// So that deadline and abort are looked at between messages.
inline constexpr int steps_per_look = 64;

/// Does what can be done now in one lane, a bounded number of steps; never blocks. All members of
/// the team call it.
template <class Engine, class Team>
KHORO_HD Progress advance(Engine& engine, const Team& team, LaneState& lane,
                          int most_steps = steps_per_look) {
  for (int step = 0; step < most_steps; ++step) {
    if (team.rank() == 0 && lane.outlook != Outlook::robbed)
      lane.outlook = Preparation<Engine>(engine, lane).until_fire();
    team.sync();
    const Outlook outlook = lane.outlook;
    bool moved = false;
    if (outlook == Outlook::fires)
      moved = move_step(engine, team, lane);
    else
      team.sync();
    if (outlook == Outlook::ends) return Progress::done;
    if (outlook == Outlook::failed) return Progress::failed;
    if (outlook == Outlook::waits || outlook == Outlook::robbed)
      return step > 0 ? Progress::moved : Progress::waiting;
    if (team.rank() == 0 && !(moved && Preparation<Engine>(engine, lane).conclude()))
      lane.outlook = Outlook::robbed;
  }
  return Progress::moved;
}

}  // namespace khoro
