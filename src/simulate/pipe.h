// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <deque>
#include <vector>

#include "simulate/simulate.h"
#include "topology/path.h"

namespace khoro {

/// A message under way.
struct Flight {
  int pipe = 0;
  std::size_t message = 0;  // its number in the pipe
  bool put = false;
  Transfer transfer;
};

/// Messages that were sent and not yet taken, in order; they have numbers.
class Queue {
 public:
  std::size_t add(std::size_t bytes) {
    messages_.push_back({bytes, false});
    return taken_ + messages_.size() - 1;
  }
  void arrive(std::size_t number) { messages_[number - taken_].arrived = true; }
  bool ready() const { return !messages_.empty() && messages_.front().arrived; }
  /// Its bytes.
  std::size_t take() {
    const std::size_t bytes = messages_.front().bytes;
    messages_.pop_front();
    ++taken_;
    return bytes;
  }
  int size() const { return static_cast<int>(messages_.size()); }

 private:
  struct Message {
    std::size_t bytes = 0;
    bool arrived = false;
  };
  std::deque<Message> messages_;
  std::size_t taken_ = 0;
};

/// A lane of a rank.
struct LaneOf {
  int rank = 0;
  std::size_t lane = 0;
  auto operator<=>(const LaneOf&) const = default;
};

/// From one rank to another: messages under way, in order; one after the other leaves.
struct Pipe {
  int from = 0, to = 0;  // ranks
  int number = 0;        // among those between these
  Queue sent;
  Queue put;
  int windows = 0;             // offered and not filled
  std::deque<Flight> waiting;  // for the one before to have left
  bool leaving = false;
  const Path* path = nullptr;   // once a message has left
  std::vector<LaneOf> lanes{};  // that use it, on either side
};

}  // namespace khoro
