// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "plan/step_text.h"
#include "plan/text.h"
#include "plan/words.h"

namespace khoro {
namespace {

constexpr int most_ranks = 65'536;
/// Chunks of all ranks together: what a proof of the plan has to hold.
constexpr std::int64_t most_cells = 1 << 24;
/// Sums of all fit into 32 bits.
constexpr int most_weight = 256;
constexpr int most_token_count = 65'536;
constexpr std::size_t most_diagnostics = 16;

/// One rank as read: the steps of all lanes in one array, the last stage of each step marked.
struct RankText {
  std::vector<Token> tokens;
  std::vector<Stage> stages;
  std::vector<std::size_t> lane_begins;
  std::vector<std::vector<int>> step_lines;  // of each lane
  int scratch_chunks = 0;
};
using Ranks = std::vector<RankText>;

/// The text is owned by the plan and by the lanes drawn from it, whichever lives longest.
Lane lane_steps(std::shared_ptr<const Ranks> ranks, std::size_t rank, std::size_t lane) {
  const RankText& text = (*ranks)[rank];
  const std::vector<std::size_t>& begins = text.lane_begins;
  const std::size_t end = lane + 1 < begins.size() ? begins[lane + 1] : text.stages.size();
  for (std::size_t i = begins[lane]; i < end;) {
    const auto plain = [&](std::size_t at) {
      Stage stage = text.stages[at];
      stage.flags &= static_cast<std::uint8_t>(~Stage::ends);
      return stage;
    };
    Step step = plain(i);
    while ((text.stages[i++].flags & Stage::ends) == 0) step.add(plain(i));
    co_yield std::move(step);
  }
}

class Parser {
 public:
  Parsed run(std::string_view text);

 private:
  void read_lines(std::string_view text);
  void check_complete();
  void take_line(std::string_view line);
  void header(Words& words);
  void begin_rank(Words& words);
  void token(Words& words);
  void begin_lane(Words& words);
  void step(Words& words);
  void count_cells(std::int64_t more);
  void report(int number, std::string_view line, std::string message);

  Plan plan_;
  Ranks ranks_;
  std::int64_t cells_ = 0;
  int line_ = 0;
  int header_line_ = 0;  // 0: not read yet
  std::vector<Diagnostic> diagnostics_;
};

void Parser::report(int number, std::string_view line, std::string message) {
  while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
  diagnostics_.push_back({number, std::string(line.substr(0, 80)), std::move(message)});
}

Parsed Parser::run(std::string_view text) {
  if (text.size() > most_plan_bytes) {
    report(1, "", fmt::format("{} bytes: a plan has at most {}", text.size(), most_plan_bytes));
  } else {
    read_lines(text);
    check_complete();
  }
  if (!diagnostics_.empty()) return {std::nullopt, std::move(diagnostics_)};
  const auto ranks = std::make_shared<const Ranks>(std::move(ranks_));
  plan_.program = [ranks](int rank) {
    const auto index = static_cast<std::size_t>(rank);
    Program program;
    program.tokens = (*ranks)[index].tokens;
    for (std::size_t lane = 0; lane < (*ranks)[index].lane_begins.size(); ++lane)
      program.lanes.push_back(lane_steps(ranks, index, lane));
    return program;
  };
  plan_.line = [ranks](int rank, int lane, int step) {
    return (*ranks)[std::size_t(rank)].step_lines[std::size_t(lane)][std::size_t(step)];
  };
  return {std::move(plan_), {}};
}

void Parser::read_lines(std::string_view text) {
  while (!text.empty() && diagnostics_.size() < most_diagnostics) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++line_;
    const std::size_t stages = ranks_.empty() ? 0 : ranks_.back().stages.size();
    try {
      take_line(line);
    } catch (const Refusal& refusal) {
      report(line_, line, refusal.message);
      if (header_line_ == 0) return;  // nothing else could be understood
      if (!ranks_.empty() && stages < ranks_.back().stages.size())
        ranks_.back().stages.resize(stages);
    }
  }
}

void Parser::check_complete() {
  if (!diagnostics_.empty()) return;
  if (header_line_ == 0)
    report(1, "", "no plan: expected \"plan COLLECTIVE.ALGORITHM ranks N chunks N\"");
  else if (ranks_.size() < static_cast<std::size_t>(plan_.collective.ranks))
    report(header_line_, "",
           fmt::format("rank {} is missing: the plan has {} ranks", ranks_.size(),
                       plan_.collective.ranks));
}

void Parser::take_line(std::string_view line) {
  Words words(line);
  if (words.at_end()) return;
  if (header_line_ == 0) {
    header(words);
  } else if (words.take("rank")) {
    begin_rank(words);
  } else if (ranks_.empty()) {
    words.refuse("\"rank 0\"");
  } else if (words.take("token")) {
    token(words);
  } else if (words.take("lane")) {
    begin_lane(words);
  } else if (ranks_.back().lane_begins.empty()) {
    words.refuse("\"lane 0\"");
  } else {
    step(words);
  }
}

void Parser::header(Words& words) {
  Collective& collective = plan_.collective;
  words.expect("plan");
  const std::string_view kind_name = words.name("a collective");
  const auto kind = collective_named(kind_name);
  if (!kind) throw Refusal{fmt::format("unknown collective \"{}\"", kind_name)};
  collective.kind = *kind;
  words.expect(".");
  plan_.algorithm = words.name("the algorithm's name");
  words.expect("ranks");
  collective.ranks = words.number("ranks", 1, most_ranks);
  words.expect("chunks");
  const bool barrier = *kind == CollectiveKind::barrier;
  plan_.chunks = words.number("chunks", barrier ? 0 : 1, barrier ? 0 : most_chunks);
  if (plan_.chunks % collective.blocks() != 0)
    throw Refusal{fmt::format("chunks {}: must be a multiple of the {} ranks", plan_.chunks,
                              collective.ranks)};
  if (words.take("weights"))
    for (int part = 0; part < plan_.chunks / collective.blocks(); ++part)
      plan_.weights.add(static_cast<std::uint32_t>(words.number("weights", 1, most_weight)));
  if (collective.has_root()) {
    words.expect("root");
    collective.root = words.number("root", 0, collective.ranks - 1);
  }
  if (collective.reduces()) {
    collective.average = words.take("average");
    collective.rank_order = words.take("rank-order");
    collective.premul = words.take("premul");
  }
  words.expect_end();
  count_cells(std::int64_t{collective.ranks} * plan_.chunks);
  header_line_ = line_;
}

void Parser::count_cells(std::int64_t more) {
  cells_ += more;
  if (cells_ > most_cells)
    throw Refusal{fmt::format("{} chunks over all ranks: at most {}", cells_, most_cells)};
}

void Parser::begin_rank(Words& words) {
  const auto expected = static_cast<int>(ranks_.size());
  const int rank = words.number("rank", 0, plan_.collective.ranks - 1);
  words.expect_end();
  ranks_.emplace_back();  // even if refused, so that what follows is still read
  if (rank != expected) throw Refusal{fmt::format("rank {} where rank {} is due", rank, expected)};
}

void Parser::token(Words& words) {
  // The words of a step cannot name tokens: they would read as the next stage.
  constexpr std::array<std::string_view, 5> reserved = {"await", "offer", "read", "recv", "take"};
  std::vector<Token>& tokens = ranks_.back().tokens;
  const std::string_view name = words.name("the token's name");
  words.expect("=");
  const int count = words.number("count", 0, most_token_count);
  words.expect_end();
  if (!ranks_.back().lane_begins.empty())
    throw Refusal{fmt::format("token {} after a lane: tokens come first", name)};
  if (std::find(reserved.begin(), reserved.end(), name) != reserved.end())
    throw Refusal{fmt::format("token {}: the name is a word of a step", name)};
  for (const Token& other : tokens)
    if (other.name == name) throw Refusal{fmt::format("token {} is declared twice", name)};
  tokens.push_back({std::string(name), count});
}

void Parser::begin_lane(Words& words) {
  RankText& rank = ranks_.back();
  const auto expected = static_cast<int>(rank.lane_begins.size());
  const int lane = words.number("lane", 0, most_lanes - 1);
  words.expect_end();
  rank.lane_begins.push_back(rank.stages.size());  // even if refused, as above
  rank.step_lines.emplace_back();
  if (lane != expected) throw Refusal{fmt::format("lane {} where lane {} is due", lane, expected)};
}

void Parser::step(Words& words) {
  RankText& rank = ranks_.back();
  const std::size_t begin = rank.stages.size();
  read_step(words, {plan_.collective.ranks, rank.tokens}, rank.stages);
  rank.stages.back().flags |= Stage::ends;
  rank.step_lines.back().push_back(line_);
  const std::span<const Stage> stages = std::span(rank.stages).subspan(begin);
  for (const Stage& stage : stages)
    if (stage.has_span() && stage.buffer == Buffer::scratch && stage.last > rank.scratch_chunks) {
      count_cells(stage.last - rank.scratch_chunks);
      rank.scratch_chunks = stage.last;
    }
  // A message is as wide as the span that it is read from or written to, here or at its other end.
  if (std::any_of(stages.begin(), stages.end(), [](const Stage& s) { return s.has_channel(); }))
    for (const Stage& stage : stages)
      plan_.widest_message = std::max(plan_.widest_message, stage.last - stage.first);
}

}  // namespace

Parsed parse(std::string_view text) { return Parser().run(text); }

}  // namespace khoro
