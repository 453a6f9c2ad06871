// SPDX-License-Identifier: Apache-2.0
#include "plan/step_text.h"

#include <fmt/format.h>

namespace khoro {
namespace {

/// The order that the stages of a move keep.
int phase(Verb verb) noexcept {
  switch (verb) {
    case Verb::scale:
      return 1;
    case Verb::write:
      return 2;
    case Verb::send:
    case Verb::put:
      return 3;
    case Verb::signal:
      return 4;
    default:
      return 0;
  }
}

[[noreturn]] void refuse_order(std::string_view word) {
  throw Refusal{
      fmt::format("\"{}\" out of order: reduce, scale, write, send or put, signal", word)};
}

class StepReader {
 public:
  StepReader(Words& words, const StepScope& scope) : words_(words), scope_(scope) {}

  void read(std::vector<Stage>& stages) {
    while (words_.take("await")) stages.push_back(await(token()));
    if (words_.take("offer")) {
      stages.push_back(window());
    } else {
      stages.push_back(source());
      int reached = 0;
      while (words_.take("|")) stages.push_back(next(reached));
    }
    words_.expect_end();
  }

 private:
  Stage window() {
    const Span granted = span();
    words_.expect("to");
    const Stage to = channel(Verb::offer);
    return offer(granted, to.peer(), to.index);
  }

  Stage source() {
    if (words_.take("recv")) return channel(Verb::recv);
    if (words_.take("take")) return channel(Verb::take);
    if (!words_.take("read")) words_.refuse("a step");
    return read_span();
  }

  Stage operand() {
    if (words_.take("recv")) return channel(Verb::recv);
    if (words_.take("take")) return channel(Verb::take);
    return read_span();
  }

  Stage read_span() {
    Stage stage = khoro::read(span());
    if (words_.take("*")) stage.flags |= Stage::premul;
    return stage;
  }

  /// What follows the first source: each kind after the ones before it; `scale` and `signal` once.
  Stage next(int& reached) {
    const std::string_view word = words_.peek();
    if (words_.take("reduce")) {
      if (reached > 0) refuse_order(word);
      return reduce(operand());
    }
    const Stage stage = sink();
    const int now = phase(stage.verb);
    const bool once = stage.verb == Verb::scale || stage.verb == Verb::signal;
    if (now < reached || (once && now == reached)) refuse_order(word);
    reached = now;
    return stage;
  }

  Stage sink() {
    if (words_.take("scale")) return scale();
    if (words_.take("write")) return write(span());
    if (words_.take("send")) return channel(Verb::send);
    if (words_.take("put")) return channel(Verb::put);
    if (words_.take("signal")) return signal(token());
    words_.refuse("\"reduce\", \"scale\", \"write\", \"send\", \"put\" or \"signal\"");
  }

  Span span() {
    Span span;
    if (words_.take("input")) {
      span.buffer = Buffer::input;
    } else if (words_.take("output")) {
      span.buffer = Buffer::output;
    } else if (words_.take("scratch")) {
      span.buffer = Buffer::scratch;
    } else {
      words_.refuse("\"input\", \"output\" or \"scratch\"");
    }
    words_.expect("[");
    span.first = words_.number("chunk", 0, most_chunks - 1);
    span.last = span.first + 1;
    if (words_.take(":")) span.last = words_.number("chunk", span.first, most_chunks);
    words_.expect("]");
    return span;
  }

  Stage channel(Verb verb) {
    const int peer = words_.number("rank", 0, scope_.ranks - 1);
    if (!words_.take(".")) return channel_stage(verb, peer, own_lane);
    return channel_stage(verb, peer, words_.number("channel index", 0, most_lanes - 1));
  }

  int token() {
    const std::string_view name = words_.name("a token");
    for (std::size_t i = 0; i < scope_.tokens.size(); ++i)
      if (scope_.tokens[i].name == name) return static_cast<int>(i);
    throw Refusal{fmt::format("token {} is not declared", name)};
  }

  Words& words_;
  const StepScope& scope_;
};

}  // namespace

void read_step(Words& words, const StepScope& scope, std::vector<Stage>& stages) {
  StepReader(words, scope).read(stages);
}

}  // namespace khoro
