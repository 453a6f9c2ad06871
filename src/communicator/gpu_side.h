// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/settings.h"
#include "communicator/gpu_channels.h"
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
    std::unique_ptr<GpuChannels> channels;
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
  const GpuChannels& channels() const noexcept { return *channels_; }
  /// Memory of the GPU, and pinned, that this rank owns for its channels and partial results.
  std::uint64_t channel_bytes() const noexcept { return channels_->bytes(); }
  std::uint64_t scratch_bytes() const noexcept { return scratch_.bytes(); }
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

  /// A launch, and the calls in it.
  struct Flight {
    std::vector<Operation> operations;
    std::shared_ptr<DeviceEvent> begun, ended;
    std::unique_ptr<gpu::FusedLaunch> fused;  // null: nothing is copied for it
    bool awaited = false;                     // by a thread
  };
  /// Guards the flights, and what the thread that makes calls and the one that looks after them
  /// both touch of the communicator.
  std::mutex& mutex() noexcept { return mutex_; }
  std::list<Flight>& flights() noexcept { return flights_; }

  // With the mutex. All only queue, and throw `Error`.

  /// What comes now on the stream begins after all that came before, on whatever stream.
  void fork(DeviceStream& stream);
  /// Queues a call, or several, on a stream that was forked, and adds a flight of no operations
  /// yet.
  Flight& launch(gpu::DeviceExecution& program, const CallArguments& arguments,
                 DeviceStream& stream);
  Flight& launch(std::unique_ptr<gpu::FusedLaunch> calls, DeviceStream& stream);
  /// The same of calls that go on beside what comes on the stream.
  Flight& launch_beside(std::unique_ptr<gpu::FusedLaunch> calls);
  /// What comes later, on whatever stream, begins after all that was launched since the fork.
  void join(DeviceStream& stream);
  /// To be filled, and launched.
  std::unique_ptr<gpu::FusedLaunch> fuse();
  /// The program of messages to or from a peer.
  gpu::DeviceExecution& port(int peer, bool sends);
  /// Its events are free again; it is not looked at any more.
  std::list<Flight>::iterator land(std::list<Flight>::iterator flight);

 private:
  template <class Queue>
  Flight& fly(DeviceStream& stream, Queue queue);
  std::shared_ptr<DeviceEvent> take_event();

  const std::shared_ptr<Driver> driver_;
  const int device_;
  std::unique_ptr<GpuChannels> channels_;
  gpu::ControlPage control_;
  gpu::DeviceScratch scratch_;
  PlanTable plans_;
  std::mutex mutex_;
  std::list<Flight> flights_;
  std::vector<std::shared_ptr<DeviceEvent>> events_;  // that no flight has
  std::unique_ptr<DeviceEvent> forked_;
  std::unique_ptr<DeviceEvent> joined_;
  std::unique_ptr<DeviceEvent> beside_ended_;
  bool beside_open_ = false;  // something was launched there since the fork
  std::map<std::pair<int, bool>, std::unique_ptr<gpu::DeviceExecution>> ports_;
  std::vector<std::unique_ptr<gpu::FusedLaunch>> fused_;  // that no flight has
  // End before what they use.
  std::unique_ptr<DeviceStream> stream_;
  std::unique_ptr<DeviceStream> beside_;  // made when it is first needed
};

}  // namespace khoro
