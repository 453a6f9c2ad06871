// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "plan/proof/clock.h"
#include "plan/proof/value.h"
#include "plan/verify.h"

namespace khoro::proof {

/// Where a place in World::positions may be unknown yet.
inline constexpr int nobody = -1;

constexpr bool is_sink(Verb verb) noexcept { return verb == Verb::send || verb == Verb::put; }

/// A window that a rank has granted to the sender of a channel and not had back yet.
struct Window {
  Span span;
  Clock clock;
};

/// A channel between two lanes, with D slots used in turn.
struct Channel {
  struct Slot {
    std::int32_t chunks = 0;
    bool put = false;
    /// Spans of the sender's memory that the message may refer to instead of holding a copy.
    std::vector<Span> references;
    /// What is known to whoever waits for the slot: of the sender while it is full, of the receiver
    /// after that.
    Clock clock;
  };
  int from = 0;  // rank
  int to = 0;    // rank
  std::uint8_t index = 0;
  int sender = nobody;  // in World::positions; known from the first use on
  int receiver = nobody;
  std::uint32_t sender_port = 0;  // in Position::ports
  std::uint32_t receiver_port = 0;
  bool sender_waits = false;
  bool receiver_waits = false;
  std::uint64_t sent_by = 0;  // the last step inspected that named this end
  std::uint64_t received_by = 0;

  int full = 0;  // slots
  int next_send = 0;
  int next_recv = 0;
  std::vector<Slot> slots;
  /// Chunk i of slot s is values[s * width + i].
  std::vector<Value> values;
  std::size_t width = 1;
  std::vector<Window> windows;  // oldest first
  std::size_t filled = 0;       // of the windows, by puts that are not taken yet

  Value* values_of(int slot) { return values.data() + static_cast<std::size_t>(slot) * width; }
  int after(int slot) const { return slot + 1 == static_cast<int>(slots.size()) ? 0 : slot + 1; }
  /// Makes room for messages of so many chunks.
  void widen(std::size_t chunks);
};

struct TokenState {
  explicit TokenState(const Token& of) : token(of), count(of.count) {}

  Token token;
  int count;
  int signaller = nobody;  // in World::positions
  int awaiter = nobody;
  bool awaiter_waits = false;
  std::uint64_t awaited_by = 0;  // the last step inspected that did
  /// Of the signals that have not been awaited. The counts of the start have none, and go first.
  std::deque<Clock> clocks;
};

/// What a lane cannot go on without.
enum class Lack : std::uint8_t { nothing, message, slot, window, room_for_window, token, loan };

/// One lane and how far it has come.
struct Position {
  struct PortUse {
    Channel* channel = nullptr;
    int peer = 0;
    std::uint8_t index = 0;
    bool sends = false;
    std::uint32_t next = 0;  // the port that was used after this one last time
  };

  int rank = 0;
  int lane = 0;
  std::optional<Lane> steps;
  Step* step = nullptr;     // null at the end
  int number = 0;           // of the step in its tile
  std::uint64_t begun = 0;  // steps, in all tiles
  bool queued = false;
  bool inspected = false;          // the present step is well formed, and these are its channels
  std::vector<Channel*> channels;  // one per stage

  Lack lacks = Lack::nothing;
  Channel* channel = nullptr;  // that lacks it
  int token = 0;

  std::vector<PortUse> ports;
  std::uint32_t last_port = 0;

  bool tracked = false;     // its accesses can race
  std::uint32_t place = 0;  // in the clocks
  Clock clock;
  std::vector<std::uint64_t> tile_begins;  // `begun` at the start of each tile
};

/// Memory that a message in a slot refers to: not written until the message has been received.
struct Loan {
  Span span;  // under the name of the output, if it is part of both
  Channel* channel = nullptr;
  int slot = 0;
};

/// One rank's memory and tokens.
struct RankState {
  int first_lane = 0;  // in World::positions
  int lanes = 0;
  std::vector<TokenState> tokens;
  /// In place input chunk i is output chunk i + shift.
  int shift = 0;
  std::vector<Value> output;
  std::vector<Value> scratch;
  std::vector<History> output_history;
  std::vector<History> scratch_history;
  std::vector<Span> open_windows;
  std::vector<Loan> loans;
  bool loan_awaited = false;  // by some lane
};

struct World {
  const Plan* plan = nullptr;
  VerifyOptions options;
  int input_chunks = 0;
  int output_chunks = 0;
  int tile = 0;
  std::vector<RankState> ranks;
  std::vector<Position> positions;
  std::deque<Channel> channels;
};

}  // namespace khoro::proof
