// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/dtype.h"
#include "base/status.h"
#include "executor/lending.h"
#include "executor/progress.h"
#include "plan/grid.h"
#include "plan/image.h"
#include "transport/channel.h"

namespace khoro {

struct OwnReduction;
class Scratch;

/// The buffers of one call. Borrowed until the execution is done.
struct CallBuffers {
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
};

/// What one call asks of a prepared program.
struct CallArguments {
  CallBuffers buffers;
  std::size_t count = 0;  // elements, as the caller gave it
  Dtype dtype = Dtype::f32;
  Reduction reduction = Reduction::sum;
  std::uint32_t digest = 0;
  const Blocks* blocks = nullptr;     // in place of the count; borrowed until the execution is done
  const OwnReduction* own = nullptr;  // of a reduction that was made; borrowed as long
  /// Of a call on a GPU: the buffers are as its kernels see them, and these GPUs reach all of them.
  bool in_kernels = false;
  std::uint64_t reached_by = 0;  // a DeviceSet
};

/// Opens the ends that a program's ports need. The ends live as long as the communicator; asking
/// twice gives the same end.
class Ends {
 public:
  virtual ~Ends() = default;
  virtual Sender& sender(int peer, std::uint8_t index) = 0;
  virtual Receiver& receiver(int peer, std::uint8_t index) = 0;
};

/// How a rank runs its programs; its own affair, but for the first and the tests' switches.
struct ExecutionOptions {
  /// The same on all ranks.
  Partials partials = Partials::dtype;
  LendingRule lending;
  /// A call of which a message has more bytes than that widens the channels it sends through.
  std::uint64_t short_bytes = 65'536;
  /// Borrowed; null: the execution has scratch of its own.
  Scratch* scratch = nullptr;
  /// A call of count 0 passes empty messages. So do those between two ranks, which each end knows
  /// its own count of alone.
  bool passes_empty = false;
#ifdef KHORO_TEST_SWITCHES
  /// Plants a race: `await` does not wait.
  bool ignores_tokens = false;
#endif
};

/// One rank's program bound to its channels, and the state of the call that runs in it. Made once
/// per plan, started once per call; a call allocates nothing once the scratch memory has grown to
/// its need. Thread-compatible. Never blocks.
class Execution {
 public:
  /// Opens every port of the image in `ends`, which are borrowed. Throws `Error`: invalid_argument
  /// for a program that could touch memory that is not the call's, or that no executor can run.
  Execution(Image image, const Collective& collective, Ends& ends,
            const ExecutionOptions& options = {});
  ~Execution();
  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;

  const Image& image() const noexcept;

  /// Begins a call; the one before must be done. May throw out_of_memory for scratch, and
  /// invalid_argument for slots too small for one element of each chunk of a message.
  void start(const CallArguments& call);
  /// Does what can be done now. `done` includes that every reference lent to a peer is back.
  Progress advance() noexcept;
  /// The same for one lane, `most_steps` of its steps at the most; for those who order the lanes
  /// themselves. The call is done when advance() says so.
  Progress advance(int lane, int most_steps) noexcept;
  Status status() const noexcept;

  /// For reports: the first lane that waits, its step and the peer it waits for (-1: none). When
  /// all lanes are at their ends, a peer that has not given back what was lent to it.
  struct Position {
    int lane = 0;
    int step = 0;
    int peer = -1;
    bool receives = false;
  };
  Position position() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace khoro
