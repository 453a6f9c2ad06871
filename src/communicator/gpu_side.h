// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/settings.h"
#include "communicator/gpu_channels.h"
#include "communicator/gpu_residency.h"
#include "communicator/operation.h"
#include "communicator/plan_table.h"
#include "executor/gpu/device_execution.h"

namespace khoro {

/// The half of a communicator that is on a GPU: the programs of a rank there, and the calls that
/// its streams hold and that have not ended. What it is told it does; the communicator keeps the
/// promises.
class GpuSide {
 public:
  struct Parts {
    std::shared_ptr<Driver> driver;
    int device = 0;
    GpuChannels::Parts channels;
    std::uint64_t communicator = 0;
    int neighbours = 1;  // ranks of the communicator on the same GPU, this one among them
  };
  /// Throws `Error`.
  GpuSide(Parts parts, const Settings& settings, int rank, int ranks);
  /// Waits until the GPU does nothing more for this rank.
  ~GpuSide();
  GpuSide(const GpuSide&) = delete;
  GpuSide& operator=(const GpuSide&) = delete;

  // Thread-safe.

  Driver& driver() const noexcept { return *driver_; }
  int device() const noexcept { return device_; }
  const GpuChannels& channels() const noexcept { return channels_; }
  /// Memory of the GPU, and pinned, that this rank owns: for its channels, for partial results, and
  /// for programs, the ends of channels that they find, and lists of groups.
  std::uint64_t channel_bytes() const noexcept { return channels_.bytes(); }
  std::uint64_t scratch_bytes() const noexcept { return scratch_.held(); }
  std::uint64_t program_bytes() const noexcept { return arena_.held() + control_.bytes(); }
  /// The buffer as kernels of the GPU see it. Throws invalid_argument, naming it, if they do not
  /// reach so many bytes of it, or it lies on another GPU.
  Reached reach(const void* buffer, std::uint64_t bytes, const char* name) const;
  /// Has all kernels of the rank end soon, those that are queued too.
  void stop() noexcept { control_.stop(); }
  /// After stop(): true once no kernel of the rank reads or writes memory any more. False may also
  /// mean that a call is being made.
  bool quiet() noexcept;
  gpu::Report report() const noexcept { return control_.report(); }

  // Of the thread that makes calls.

  PlanTable& plans() noexcept { return plans_; }
  /// For calls that name none.
  DeviceStream& stream() noexcept { return *stream_; }

  /// Calls that are launched together.
  struct Flight {
    explicit Flight(gpu::DeviceArena& arena) : calls(arena) {}
    std::vector<Operation> operations;
    gpu::FusedLaunch calls;
    std::shared_ptr<DeviceEvent> begun, ended;
    bool awaited = false;  // by a thread
    bool drained = false;  // by one that waits for all that there is
    std::size_t weight() const noexcept { return std::max<std::size_t>(operations.size(), 1); }
  };
  using Flights = std::list<Flight>;
  /// Guards the flights, and what the thread that makes calls and the one that looks after them
  /// both touch of the communicator.
  std::mutex& mutex() noexcept { return mutex_; }
  /// Those that were launched, in their order, in which they end.
  const Flights& flights() const noexcept { return flights_; }
  Flights& flights() noexcept { return flights_; }

  /// Calls in them, but at least one for each.
  std::size_t queued() const noexcept { return queued_; }

  // With the mutex. They throw `Error`.

  /// An empty one, to be filled and launched.
  Flights take();
  /// Queues it: it begins after all that was launched before, on whatever stream.
  void launch(Flights flight, DeviceStream& stream);
  /// Forgets the first one, which has ended.
  void land() noexcept;
  /// The program of messages to or from a peer, or of those to the rank itself.
  gpu::DeviceExecution& port(int peer, bool sends);

 private:
  const std::shared_ptr<Driver> driver_;
  const int device_;
  gpu::DeviceArena arena_;
  GpuChannels channels_;
  gpu::ControlPage control_;
  gpu::DeviceScratch scratch_;
  PlanTable plans_;
  std::mutex mutex_;
  GpuResidency::Member residency_;
  Flights flights_;
  std::size_t queued_ = 0;
  Flights landed_;  // to be used again
  std::map<std::pair<int, bool>, std::unique_ptr<gpu::DeviceExecution>> ports_;
  std::unique_ptr<DeviceStream> stream_;  // ends before what it uses
};

}  // namespace khoro
