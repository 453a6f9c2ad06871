// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/dtype.h"
#include "base/status.h"
#include "plan/grid.h"
#include "plan/image.h"
#include "transport/channel.h"

namespace khoro {

/// What a look at a lane, or at a whole execution, came to.
enum class Progress : std::uint8_t {
  moved,    // something was done, and there may be more
  waiting,  // nothing can be done until a peer acts
  done,
  failed,  // status() says why
};

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
};

/// Opens the ends that a program's ports need. The ends live as long as the communicator; asking
/// twice gives the same end.
class Ends {
 public:
  virtual ~Ends() = default;
  virtual Sender& sender(int peer, std::uint8_t index) = 0;
  virtual Receiver& receiver(int peer, std::uint8_t index) = 0;
};

/// One rank's program bound to its channels, and the state of the call that runs in it. Made once
/// per plan, started once per call; a call allocates nothing once the scratch memory has grown to
/// its need. Thread-compatible. Never blocks.
class Execution {
 public:
  /// Borrows `ends`. Opens every port of the image; throws `Error`.
  Execution(Image image, const Collective& collective, Ends& ends);
  ~Execution();
  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;

  const Image& image() const noexcept;

  /// Begins a call; the one before must be done. May throw out_of_memory for scratch.
  void start(const CallArguments& call);
  /// Does what can be done now. `done` includes that every reference lent to a peer is back.
  Progress advance() noexcept;
  Status status() const noexcept;

  /// For reports: the first lane that waits, its step and the peer it waits for (-1: none).
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
