// SPDX-License-Identifier: Apache-2.0
#pragma once

// The only loop over the steps of a lane, for host and device.
//
// An Engine is what the interpreter knows of the world:
//   stage(i), port_of(i), tiles(), ranks(), digest(), fail(status)      the image and the call
//   shift(form)                                 log2 of an element's bytes
//   carry_form()                                Form::dtype where the carry type is the dtype
//   room()                                      elements that fit a chunk of scratch
//   piece(stage, buffer, chunk, tile)           a Run of one chunk; next_piece(run) the one after
//   hold(chunk, elements, form)                 what a chunk of scratch holds from now on
//   take_token(t), give_token(t)                its counter, down if it is not 0, and up
//   observe, release, acquire, payload_limit, publish, window, publish_put     the ends, by port
//   lends_from(buffer), lends(), lent(data, bytes), may_lend(port, bytes), lend(port, head, data)
//                                               references, and those not yet returned
//   offer(port, window, stage, tile), oldest_window(port), window_taken(port)
//   grain(members, sinks, elements), fold(...)  the arithmetic
// The leader of the team calls all but the last two, which any member may.

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
    if (lane_.first == lane_.last) return Outlook::ends;
    if (lane_.stage == lane_.last) {
      if (++lane_.tile >= engine_.tiles()) {
        lane_.tile = engine_.tiles();
        return Outlook::ends;
      }
      lane_.stage = lane_.first;
    }
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

  /// After the data has moved: messages first, they are what peers wait for.
  KHORO_HD void conclude() {
    Move& move = lane_.move;
    for (std::uint32_t k = 0; k < move.sink_count; ++k) conclude(lane_.sinks[k]);
    for (std::uint32_t k = 0; k < move.source_count; ++k) {
      const Source& source = lane_.sources[k];
      if (source.verb == Verb::read) continue;
      if (source.verb == Verb::take) engine_.window_taken(source.port);
      engine_.release(source.port);
    }
    if (move.signals >= 0) engine_.give_token(move.signals);
    move = Move{};
  }

 private:
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

  struct Whole {
    Run run;
    std::uint64_t elements = 0;
    Form form = Form::dtype;
    bool contiguous = true;
  };

  /// The memory of a span in this lane's tile.
  KHORO_HD Whole whole(const Stage& stage, std::uint32_t stage_index, std::uint64_t tile) const {
    Whole whole;
    if (stage.first == stage.last) {
      whole.run.buffer = stage.buffer;
      return whole;
    }
    whole.run = engine_.piece(stage_index, stage.buffer, stage.first, tile);
    whole.elements = whole.run.left;
    whole.form = whole.run.form;
    if (stage.last - stage.first == 1) return whole;
    whole.run.last = stage.last;
    Run piece = whole.run;
    for (std::int32_t chunk = stage.first + 1; chunk < stage.last; ++chunk) {
      const std::byte* const end = piece.data + bytes(piece.left, piece.form);
      engine_.next_piece(piece);
      if (piece.left == 0) continue;
      if (whole.elements > 0 && piece.data != end) whole.contiguous = false;
      if (piece.form != whole.form) whole.contiguous = false;
      if (piece.form == Form::carry) whole.form = Form::carry;
      whole.elements += piece.left;
    }
    while (whole.run.left == 0 && whole.run.next < whole.run.last) engine_.next_piece(whole.run);
    if (whole.contiguous) {
      whole.run.left = whole.elements;
      whole.run.next = whole.run.last;
    }
    return whole;
  }

  KHORO_HD void add_source(const Stage& stage, const Source& source, Form form) {
    Move& move = lane_.move;
    const bool lone = move.source_count == 0;
    lane_.sources[move.source_count] = source;
    lane_.operands[move.source_count] = {source.run.data, source.run.form};
    ++move.source_count;
    move.form = stage.flags & Stage::reduces ? engine_.carry_form() : form;
    if (!lone) move.lendable = nullptr;
  }

  KHORO_HD Outlook read(const Stage& stage) {
    const Whole span = whole(stage, lane_.stage, lane_.tile);
    if (!agrees(span.elements)) return fail(Status::corrupt);
    if (!span.contiguous) lane_.move.pieces = true;
    lane_.move.lendable =
        span.contiguous && engine_.lends_from(stage.buffer) ? span.run.data : nullptr;
    Source source;
    source.run = span.run;
    source.verb = Verb::read;
    add_source(stage, source, span.form);
    return Outlook::fires;
  }

  KHORO_HD Outlook receive(const Stage& stage) {
    const Observed seen = engine_.observe(port());
    if (seen.status != Status::ok) return fail(seen.status);
    if (seen.message == nullptr) return Outlook::waits;
    const MessageHead& head = seen.message->head;
    const Form form = head.form == Form::carry ? engine_.carry_form() : Form::dtype;
    const std::uint64_t elements = head.bytes >> engine_.shift(form);
    if (bytes(elements, form) != head.bytes || !agrees(elements)) return fail(Status::corrupt);
    Source source;
    source.port = port();
    source.verb = stage.verb;
    source.stage = lane_.stage;
    source.run.left = elements;
    source.run.form = form;
    source.run.data = const_cast<std::byte*>(seen.message->data);  // read only, as a source
    if (stage.verb == Verb::take && !fits_window(*seen.message, form, source))
      return fail(Status::corrupt);
    add_source(stage, source, source.run.form);
    return Outlook::fires;
  }

  /// Turns the message that fills the oldest window into a source that reads the window.
  KHORO_HD bool fits_window(const Message& message, Form form, Source& source) {
    const auto window = engine_.oldest_window(source.port);
    if (!window.open) return false;
    const Stage& offered = engine_.stage(window.stage);
    if (offered.buffer == Buffer::scratch) {
      if (source.run.left > engine_.room()) return false;
      engine_.hold(offered.first, source.run.left, form);
    }
    const Whole span = whole(offered, window.stage, window.tile);
    if (span.elements != source.run.left) return false;
    const bool in_place = message.by_reference && message.data == span.run.data;
    if (in_place && span.form != form && span.elements > 0) return false;
    if (!in_place) {
      source.slot = message.data;
      source.slot_form = form;
      lane_.move.settles = true;
    }
    if (!span.contiguous) lane_.move.pieces = true;
    source.run = span.run;
    return true;
  }

  KHORO_HD Outlook write(const Stage& stage) {
    Move& move = lane_.move;
    Sink sink;
    sink.chunk = stage.first;
    if (stage.buffer == Buffer::scratch) {
      if (move.elements > engine_.room()) return fail(Status::corrupt);
      sink.run = engine_.piece(lane_.stage, stage.buffer, stage.first, lane_.tile);
      sink.run.left = move.elements;
      sink.run.form = move.form;
      move.lendable = sink.run.data;
    } else {
      const Whole span = whole(stage, lane_.stage, lane_.tile);
      if (!agrees(span.elements)) return fail(Status::corrupt);
      if (!span.contiguous) move.pieces = true;
      sink.run = span.run;
      move.form = Form::dtype;
      move.lendable = span.contiguous ? span.run.data : nullptr;
    }
    if (is_lent(sink.run, move.elements)) return Outlook::waits;
    add_sink(sink);
    return Outlook::fires;
  }

  KHORO_HD bool is_lent(Run run, std::uint64_t elements) {
    if (!engine_.lends()) return false;
    for (std::uint64_t left = elements; left > 0;) {
      const std::uint64_t piece = run.left < left ? run.left : left;
      if (engine_.lent(run.data, bytes(piece, run.form))) return true;
      left -= piece;
      verbs::go_on(engine_, run, piece);
    }
    return false;
  }

  KHORO_HD void add_sink(const Sink& sink) { lane_.sinks[lane_.move.sink_count++] = sink; }

  KHORO_HD Outlook send() {
    const Move& move = lane_.move;
    Sink sink;
    sink.port = port();
    sink.bytes = bytes(move.elements, move.form);
    sink.run.form = move.form;
    sink.run.left = move.elements;
    if (move.lendable != nullptr && engine_.may_lend(sink.port, sink.bytes)) {
      if (engine_.acquire(sink.port, 0) == nullptr) return Outlook::waits;
      sink.kind = Sink::Kind::reference;
      sink.run.data = const_cast<std::byte*>(move.lendable);
    } else {
      if (sink.bytes > engine_.payload_limit(sink.port)) return fail(Status::corrupt);
      sink.kind = Sink::Kind::send;
      sink.run.data = engine_.acquire(sink.port, sink.bytes);
      if (sink.run.data == nullptr) return Outlook::waits;
    }
    add_sink(sink);
    return Outlook::fires;
  }

  KHORO_HD Outlook put() {
    const Move& move = lane_.move;
    const Window* const window = engine_.window(port());
    if (window == nullptr) return Outlook::waits;
    Sink sink;
    sink.kind = Sink::Kind::put;
    sink.port = port();
    sink.run.left = move.elements;
    sink.run.form = move.form;
    // A window in output takes the dtype alone.
    if (bytes(move.elements, move.form) > window->bytes) sink.run.form = Form::dtype;
    sink.bytes = bytes(move.elements, sink.run.form);
    const bool direct = window->data != nullptr;
    if (sink.bytes > (direct ? window->bytes : engine_.payload_limit(sink.port)))
      return fail(Status::corrupt);
    std::byte* const slot = engine_.acquire(sink.port, direct ? 0 : sink.bytes);
    if (slot == nullptr) return Outlook::waits;
    sink.run.data = direct ? window->data : slot;
    add_sink(sink);
    return Outlook::fires;
  }

  KHORO_HD Outlook offer(const Stage& stage) {
    Whole span;
    if (stage.buffer == Buffer::scratch) {
      span.run = engine_.piece(lane_.stage, stage.buffer, stage.first, lane_.tile);
      span.run.form = engine_.carry_form();
      span.run.left = span.elements = engine_.room();
    } else {
      span = whole(stage, lane_.stage, lane_.tile);
    }
    if (is_lent(span.run, span.elements)) return Outlook::waits;
    const Window window{span.contiguous ? span.run.data : nullptr,
                        bytes(span.elements, span.run.form)};
    if (!engine_.offer(port(), window, lane_.stage, lane_.tile)) return Outlook::waits;
    return Outlook::fires;
  }

  KHORO_HD void conclude(const Sink& sink) {
    const MessageHead head{engine_.digest(), sink.bytes, sink.run.form};
    switch (sink.kind) {
      case Sink::Kind::write:
        if (sink.run.buffer == Buffer::scratch)
          engine_.hold(sink.chunk, lane_.move.elements, sink.run.form);
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

  Engine& engine_;
  LaneState& lane_;
};

/// Does what can be done now in one lane, a bounded number of steps; never blocks. All members of
/// the team call it.
template <class Engine, class Team>
KHORO_HD Progress advance(Engine& engine, const Team& team, LaneState& lane) {
  constexpr int most_steps = 64;  // so that deadline and abort are looked at between messages
  for (int step = 0; step < most_steps; ++step) {
    if (team.rank() == 0) lane.outlook = Preparation<Engine>(engine, lane).until_fire();
    team.sync();
    const Outlook outlook = lane.outlook;
    if (outlook == Outlook::fires) verbs::move(engine, team, lane);
    team.sync();
    if (outlook == Outlook::ends) return Progress::done;
    if (outlook == Outlook::failed) return Progress::failed;
    if (outlook == Outlook::waits) return step > 0 ? Progress::moved : Progress::waiting;
    if (team.rank() == 0) Preparation<Engine>(engine, lane).conclude();
  }
  return Progress::moved;
}

}  // namespace khoro
