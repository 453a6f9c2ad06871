// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "plan/program.h"

namespace khoro::test {

/// A plan followed by hand, slowly and obviously, over channels without end: a second opinion
/// beside `verify`, and a counter of messages. Values are written out: "(0.1+1.1)/n" is chunk 1 of
/// ranks 0 and 1, added and scaled. Knows no windows.
struct Walk {
  bool finished = false;
  std::vector<std::vector<std::string>> outputs;
  /// The longest chain of messages of which each is sent after the one before was received.
  int rounds = 0;
  /// Chunks that each rank sends.
  std::vector<int> sent;
};

class Walker {
 public:
  explicit Walker(const Plan& plan) : collective_(plan.collective) {
    const auto chunks = [&](int count) { return std::vector<std::string>(std::size_t(count)); };
    for (int rank = 0; rank < collective_.ranks; ++rank) {
      Place& place = places_.emplace_back(Place{plan.program(rank), {}, {}, {}});
      place.buffers[Buffer::input] = chunks(collective_.input_chunks(plan.chunks));
      place.buffers[Buffer::output] = chunks(collective_.output_chunks(plan.chunks));
      for (std::size_t i = 0; i < place.buffers[Buffer::input].size(); ++i)
        place.buffers[Buffer::input][i] = std::to_string(rank) + "." + std::to_string(i);
      for (const Token& token : place.program.tokens)
        place.tokens.emplace_back(std::size_t(token.count), 0);
      place.lanes.resize(place.program.lanes.size());
      for (std::size_t i = 0; i < place.lanes.size(); ++i)
        place.lanes[i].step = place.program.lanes[i].next();
    }
    walk_.sent.resize(std::size_t(collective_.ranks));
  }

  Walk run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int rank = 0; rank < collective_.ranks; ++rank)
        for (std::size_t lane = 0; lane < places_[std::size_t(rank)].lanes.size(); ++lane)
          while (fire(rank, int(lane))) moved = true;
    }
    walk_.finished = true;
    for (Place& place : places_) {
      walk_.outputs.push_back(place.buffers[Buffer::output]);
      for (const Position& lane : place.lanes) walk_.finished &= lane.step == nullptr;
    }
    for (const auto& [key, queue] : channels_) walk_.finished &= queue.empty();
    return walk_;
  }

 private:
  using Value = std::vector<std::string>;
  struct Message {
    Value value;
    int depth;
  };
  struct Position {
    const Step* step = nullptr;
    int depth = 0;  // messages received one after the other to come here
  };
  struct Place {
    Program program;
    std::map<Buffer, Value> buffers;
    std::vector<std::deque<int>> tokens;  // the depth of each count
    std::vector<Position> lanes;
  };

  std::deque<Message>& channel(int from, int to, const Stage& stage, int lane) {
    return channels_[{from, to, stage.index == own_lane ? lane : stage.index}];
  }

  bool ready(int rank, int lane) {
    Place& place = places_[std::size_t(rank)];
    for (const Stage& stage : place.lanes[std::size_t(lane)].step->stages()) {
      if (stage.verb == Verb::recv && channel(stage.peer(), rank, stage, lane).empty())
        return false;
      if (stage.verb == Verb::await && place.tokens[std::size_t(stage.token())].empty())
        return false;
    }
    return true;
  }

  bool fire(int rank, int lane) {
    Place& place = places_[std::size_t(rank)];
    Position& position = place.lanes[std::size_t(lane)];
    if (position.step == nullptr || !ready(rank, lane)) return false;
    Value value;
    for (const Stage& stage : position.step->stages()) apply(rank, lane, stage, value);
    position.step = place.program.lanes[std::size_t(lane)].next();
    return true;
  }

  void apply(int rank, int lane, const Stage& stage, Value& value) {
    Place& place = places_[std::size_t(rank)];
    int& depth = place.lanes[std::size_t(lane)].depth;
    Value& buffer = place.buffers[stage.buffer];
    if (stage.has_span() && buffer.size() < std::size_t(stage.last))
      buffer.resize(std::size_t(stage.last));  // scratch grows; elsewhere the comparison fails
    if (stage.verb == Verb::read) {
      fold(stage, {buffer.begin() + stage.first, buffer.begin() + stage.last}, value);
    } else if (stage.verb == Verb::recv) {
      std::deque<Message>& queue = channel(stage.peer(), rank, stage, lane);
      depth = std::max(depth, queue.front().depth);
      fold(stage, queue.front().value, value);
      queue.pop_front();
    } else if (stage.verb == Verb::scale) {
      for (std::string& chunk : value) chunk = "(" + chunk + ")/n";
    } else if (stage.verb == Verb::write) {
      std::copy(value.begin(), value.end(), buffer.begin() + stage.first);
    } else if (stage.verb == Verb::send) {
      channel(rank, stage.peer(), stage, lane).push_back({value, depth + 1});
      walk_.rounds = std::max(walk_.rounds, depth + 1);
      walk_.sent[std::size_t(rank)] += int(value.size());
    } else if (stage.verb == Verb::signal) {
      place.tokens[std::size_t(stage.token())].push_back(depth);
    } else if (stage.verb == Verb::await) {
      std::deque<int>& token = place.tokens[std::size_t(stage.token())];
      depth = std::max(depth, token.front());
      token.pop_front();
    }
  }

  static void fold(const Stage& stage, const Value& operand, Value& value) {
    if ((stage.flags & Stage::reduces) == 0) {
      value = operand;
      return;
    }
    for (std::size_t i = 0; i < value.size() && i < operand.size(); ++i)
      value[i] = "(" + value[i] + "+" + operand[i] + ")";
  }

  Collective collective_;
  std::vector<Place> places_;
  std::map<std::tuple<int, int, int>, std::deque<Message>> channels_;
  Walk walk_;
};

inline Walk walk(const Plan& plan) { return Walker(plan).run(); }

}  // namespace khoro::test
