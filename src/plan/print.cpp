// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <iterator>

#include "plan/text.h"

namespace khoro {
namespace {

using Out = std::back_insert_iterator<std::string>;

std::string_view word(Verb verb) noexcept {
  switch (verb) {
    case Verb::await:
      return "await";
    case Verb::offer:
      return "offer";
    case Verb::read:
      return "read";
    case Verb::recv:
      return "recv";
    case Verb::take:
      return "take";
    case Verb::scale:
      return "scale";
    case Verb::write:
      return "write";
    case Verb::send:
      return "send";
    case Verb::put:
      return "put";
    case Verb::signal:
      return "signal";
  }
  return "?";
}

void print_span(Out out, const Stage& stage) {
  fmt::format_to(out, " {}[{}", name(stage.buffer), stage.first);
  if (stage.last != stage.first + 1) fmt::format_to(out, ":{}", stage.last);
  fmt::format_to(out, "]{}", stage.flags & Stage::premul ? "*" : "");
}

void print_channel(Out out, const Stage& stage, int lane) {
  fmt::format_to(out, " {}", stage.peer());
  if (stage.index != own_lane && stage.index != lane) fmt::format_to(out, ".{}", stage.index);
}

void print_token(Out out, int token, const std::vector<Token>& tokens) {
  // A number beyond the list is a fault that `verify` reports, by this very text.
  if (token >= 0 && static_cast<std::size_t>(token) < tokens.size())
    fmt::format_to(out, " {}", tokens[static_cast<std::size_t>(token)].name);
  else
    fmt::format_to(out, " ?{}", token);
}

void print_stage(Out out, const Stage& stage, int lane, const std::vector<Token>& tokens) {
  const bool operand = (stage.flags & Stage::reduces) != 0;
  // `reduce input[0]` needs no `read`; `reduce recv 3` tells a channel from a span.
  if (operand) fmt::format_to(out, "reduce");
  if (!operand || stage.verb != Verb::read)
    fmt::format_to(out, "{}{}", operand ? " " : "", word(stage.verb));
  if (stage.has_span()) print_span(out, stage);
  if (stage.verb == Verb::offer) fmt::format_to(out, " to");
  if (stage.has_channel()) print_channel(out, stage, lane);
  if (stage.verb == Verb::await || stage.verb == Verb::signal)
    print_token(out, stage.token(), tokens);
}

std::string weights_text(const Weights& weights) {
  std::string text = weights.empty() ? "" : " weights";
  for (std::size_t i = 0; i < weights.size(); ++i) text += fmt::format(" {}", weights.of(i));
  return text;
}

}  // namespace

std::string print(const Step& step, int lane, const std::vector<Token>& tokens) {
  std::string text;
  std::string_view gap;
  for (const Stage& stage : step.stages()) {
    text += gap;
    print_stage(std::back_inserter(text), stage, lane, tokens);
    gap = stage.verb == Verb::await ? " " : " | ";
  }
  return text;
}

std::string print_head(const Plan& plan) {
  const Collective& collective = plan.collective;
  return fmt::format("plan {} ranks {} chunks {}{}{}{}{}{}\n", plan.name(), collective.ranks,
                     plan.chunks, weights_text(plan.weights),
                     collective.has_root() ? fmt::format(" root {}", collective.root) : "",
                     collective.average ? " average" : "",
                     collective.rank_order ? " rank-order" : "",
                     collective.premul ? " premul" : "");
}

std::string print_rank(const Plan& plan, int rank) {
  Program program = plan.program(rank);
  std::string text = fmt::format("rank {}\n", rank);
  const auto out = std::back_inserter(text);
  for (const Token& token : program.tokens)
    fmt::format_to(out, "  token {} = {}\n", token.name, token.count);
  for (std::size_t lane = 0; lane < program.lanes.size(); ++lane) {
    fmt::format_to(out, "  lane {}\n", lane);
    while (const Step* step = program.lanes[lane].next())
      fmt::format_to(out, "    {}\n", print(*step, static_cast<int>(lane), program.tokens));
  }
  return text;
}

std::string print(const Plan& plan, std::optional<int> rank) {
  std::string text = print_head(plan);
  for (int r = rank.value_or(0); r < (rank ? *rank + 1 : plan.collective.ranks); ++r)
    text += print_rank(plan, r);
  return text;
}

}  // namespace khoro
