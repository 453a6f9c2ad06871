// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "communicator/communicator.h"

namespace khoro {

/// The calls of one communicator in a group. Collectives run one after the other in call order;
/// sends and receives progress beside them: in call order per peer the plain sends, the sends with
/// tags, and the receives with each tag.
/// Thread-compatible. Borrows the communicator.
class Batch {
 public:
  explicit Batch(Communicator& communicator) : communicator_(communicator) {}

  Communicator& communicator() const noexcept { return communicator_; }
  /// Adds a checked call.
  void add(const Call& call);

  /// Throws invalid_usage if what this rank sends to itself lacks its receive or the other way
  /// round, and invalid_argument if sizes differ. Before anything has begun.
  void check_messages_to_itself() const;
  /// Copies what this rank sends to itself. First of all, and once.
  void copy_messages_to_itself() noexcept;

  // On GPUs, as Communicator has them. Once.
  void prepare();
  void launch(DeviceStream* stream) { communicator_.launch(on_gpu_, stream); }

  Progress advance() noexcept;
  /// No operation outlives `until`, nor its own deadline.
  bool examine(Time now, Time until = never) noexcept;
  Time wake_by(Time now) const noexcept;

 private:
  /// Calls that follow one another.
  struct Queue {
    std::vector<Call> calls;
    std::size_t next = 0;
    bool under_way = false;
    Operation operation;

    bool done() const noexcept { return !under_way && next == calls.size(); }
  };
  Progress advance(Queue& queue) noexcept;
  Queue& queue(const Call& call);

  Communicator& communicator_;
  std::vector<Queue> queues_;
  std::vector<Operation*> operations_;  // those under way, while examine() runs
  std::vector<Call> to_self_;           // by tag, those with one tag in call order
  std::vector<Call> from_self_;         // the same
  Communicator::GpuCalls on_gpu_;
};

/// Runs all batches to their ends, together; the calling thread blocks. A batch whose communicator
/// gets poisoned ends, the others go on. Throws the first `Error`.
void run_together(std::span<Batch> batches);

}  // namespace khoro
