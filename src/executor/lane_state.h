// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where a lane stands: all that the interpreter keeps between two looks. Trivially copyable, so
// that it may lie in the memory of a device.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/device.h"
#include "base/dtype.h"
#include "device/fold.h"
#include "executor/progress.h"
#include "plan/step.h"

namespace khoro {

/// The elements of a span, piece by piece: one piece a chunk, since chunks of different blocks, and
/// those of scratch, do not lie side by side. A message is a run of one piece.
struct Run {
  std::byte* data = nullptr;
  std::uint64_t left = 0;  // elements of the piece at `data`
  std::uint64_t tile = 0;
  std::int32_t next = 0;  // the chunk after this piece
  std::int32_t last = 0;
  Buffer buffer = Buffer::input;
  Form form = Form::dtype;
  /// Several chunks of scratch that are to be written: not as long as what they hold, but as the
  /// chunks of the whole vector.
  bool fresh = false;
};

/// A source beside its operand: where its data goes on, and what is given back after the step.
struct Source {
  Run run;
  std::uint32_t stage = 0;
  std::uint32_t port = 0;
  Verb verb = Verb::read;
  /// A window that its peer filled through a slot: it is copied before anything reads it.
  const std::byte* slot = nullptr;
  Form slot_form = Form::dtype;
};

struct Sink {
  enum class Kind : std::uint8_t { write, send, reference, put };
  Run run;
  std::uint64_t bytes = 0;
  std::uint32_t port = 0;
  Kind kind = Kind::write;
  std::int32_t chunk = 0;  // of a write
};

/// What a team folds at once, and to where: `sinks` that are references are passed over.
struct FoldRequest {
  const Operand* operands = nullptr;
  const Sink* sinks = nullptr;
  std::uint32_t operand_count = 0;
  std::uint32_t sink_count = 0;
  std::uint64_t elements = 0;
  std::uint32_t divisor = 0;
};

/// What a chunk of scratch holds.
struct Held {
  std::uint64_t elements = 0;
  Form form = Form::dtype;
  bool written = false;
};

/// A window that a lane has offered: by which stage, in which tile.
struct OfferedWindow {
  std::uint32_t stage = 0;
  std::uint64_t tile = 0;
  bool open = false;
};

/// A step under preparation, or about to fire.
struct Move {
  std::uint64_t elements = 0;
  std::uint64_t segment = 0;            // elements up to the first end of a piece
  const std::byte* lendable = nullptr;  // memory that holds the value as it will be sent
  std::uint32_t source_count = 0;
  std::uint32_t sink_count = 0;
  std::uint32_t divisor = 0;
  std::int32_t signals = -1;  // a token
  Form form = Form::dtype;    // of the value after the stages so far
  bool counted = false;       // `elements` is known
  bool pieces = false;        // some run has more than one piece
  bool settles = false;       // some window is to be copied from its slot first
  bool written = false;       // `lendable` is what this step writes
  bool borrows = false;       // some message lies in memory of who sent it

  /// For the next step. What is not reset here is set before it is read.
  KHORO_HD void clear() noexcept {
    elements = 0;
    source_count = 0;
    sink_count = 0;
    divisor = 0;
    signals = -1;
    counted = false;
    pieces = false;
    settles = false;
    borrows = false;
  }
};

/// What the leader of a team found, for all to follow. `robbed`: what a step has read was taken
/// back meanwhile, so that the step must never end; why is what comes next.
enum class Outlook : std::uint8_t { fires, waits, ends, failed, robbed };

struct LaneState {
  std::uint32_t first = 0;  // its stages
  std::uint32_t last = 0;
  std::uint32_t stage = 0;  // looked at next; those before it in its step are ready
  Outlook outlook = Outlook::waits;
  std::uint64_t tile = 0;
  Move move;
  // Room for the widest step of the lane; not owned. operands[i] belongs to sources[i].
  Operand* operands = nullptr;
  Source* sources = nullptr;
  Sink* sinks = nullptr;
};
static_assert(std::is_trivially_copyable_v<LaneState> && std::is_trivially_copyable_v<Source> &&
              std::is_trivially_copyable_v<Sink>);

}  // namespace khoro
