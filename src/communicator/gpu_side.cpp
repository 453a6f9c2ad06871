// SPDX-License-Identifier: Apache-2.0
#include "communicator/gpu_side.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace khoro {
namespace {

std::uint64_t direct_bytes_of(const Settings& settings) {
  return settings.direct_bytes > 0 ? static_cast<std::uint64_t>(settings.direct_bytes) : UINT64_MAX;
}

}  // namespace

GpuSide::GpuSide(Parts parts, const Settings& settings, int rank, int ranks)
    : driver_(parts.driver),
      device_(parts.device),
      channels_(std::move(parts.channels)),
      control_(*driver_, device_),
      scratch_(*driver_, device_, settings.direct_bytes > 0),
      plans_(rank, ranks, settings,
             gpu::DeviceSeat{*driver_, device_, *channels_, control_, scratch_, Partials::dtype,
                             parts.neighbours, false, direct_bytes_of(settings)}),
      forked_(driver_->make_event(device_)),
      joined_(driver_->make_event(device_)),
      stream_(driver_->make_stream(device_)) {}

GpuSide::~GpuSide() {
  // A stream of the caller's may hold calls of this rank.
  for (const Flight& flight : flights_) {
    try {
      flight.ended->synchronize();
    } catch (const Error& error) {
      log(LogLevel::trace, "a call on GPU {}: {}", device_, error.what());
    }
  }
}

Reached GpuSide::reach(const void* buffer, std::uint64_t bytes, const char* name) const {
  const auto address = static_cast<DeviceAddress>(reinterpret_cast<std::uintptr_t>(buffer));
  const auto refuse = [&](const std::string& why) {
    throw Error(
        Code::invalid_argument,
        fmt::format("the {} buffer is no memory that GPU {} reaches: {}", name, device_, why));
  };
  Reached reached;
  try {
    reached = driver_->reach(device_, address);
  } catch (const Error& error) {
    refuse(error.what());
  }
  const AddressFacts& facts = reached.facts;
  if (facts.kind == AddressFacts::Kind::device && facts.device != device_)
    refuse(fmt::format("it lies on GPU {}; a rank's buffers are on the rank's own", facts.device));
  const std::uint64_t left = facts.begin + facts.bytes - address;
  if (facts.kind == AddressFacts::Kind::device && bytes > left)
    refuse(fmt::format("{} bytes from there are left of its allocation, and the call has {}", left,
                       bytes));
  return reached;
}

bool GpuSide::quiet() noexcept {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return false;
  // A kernel looks whether it is to end before all else, so that one which has not begun is none.
  return std::none_of(flights_.begin(), flights_.end(), [](const Flight& flight) {
    try {
      return flight.begun->complete() && !flight.ended->complete();
    } catch (const Error&) {
      return false;  // the GPU has failed, and runs nothing
    }
  });
}

std::shared_ptr<DeviceEvent> GpuSide::take_event() {
  if (events_.empty()) return driver_->make_event(device_);
  std::shared_ptr<DeviceEvent> event = std::move(events_.back());
  events_.pop_back();
  return event;
}

void GpuSide::fork(DeviceStream& stream) {
  stream.wait(*joined_);
  stream.record(*forked_);
}

template <class Queue>
GpuSide::Flight& GpuSide::fly(DeviceStream& stream, Queue queue) {
  std::shared_ptr<DeviceEvent> begun = take_event(), ended = take_event();
  Flight& flight = flights_.emplace_back();
  flight.begun = std::move(begun);
  flight.ended = std::move(ended);
  try {
    stream.record(*flight.begun);
    queue(flight);
  } catch (...) {
    // What was queued all the same uses memory of the flight, which lasts until it has ended.
    stream.record(*flight.ended);
    throw;
  }
  stream.record(*flight.ended);
  return flight;
}

GpuSide::Flight& GpuSide::launch(gpu::DeviceExecution& program, const CallArguments& arguments,
                                 DeviceStream& stream) {
  if (arguments.blocks) {
    std::unique_ptr<gpu::FusedLaunch> calls = fuse();
    calls->add_wide(program, arguments);
    return launch(std::move(calls), stream);
  }
  return fly(stream, [&](Flight&) { program.launch(arguments, stream); });
}

GpuSide::Flight& GpuSide::launch(std::unique_ptr<gpu::FusedLaunch> calls, DeviceStream& stream) {
  return fly(stream, [&](Flight& flight) {
    flight.fused = std::move(calls);
    flight.fused->launch(stream);
  });
}

GpuSide::Flight& GpuSide::launch_beside(std::unique_ptr<gpu::FusedLaunch> calls) {
  if (!beside_) {
    beside_ended_ = driver_->make_event(device_);
    beside_ = driver_->make_stream(device_);
  }
  beside_->wait(*forked_);
  Flight& flight = launch(std::move(calls), *beside_);
  beside_->record(*beside_ended_);
  beside_open_ = true;
  return flight;
}

void GpuSide::join(DeviceStream& stream) {
  if (std::exchange(beside_open_, false)) stream.wait(*beside_ended_);
  stream.record(*joined_);
}

std::unique_ptr<gpu::FusedLaunch> GpuSide::fuse() {
  if (fused_.empty()) return std::make_unique<gpu::FusedLaunch>(*driver_, device_);
  std::unique_ptr<gpu::FusedLaunch> fused = std::move(fused_.back());
  fused_.pop_back();
  fused->clear();
  return fused;
}

std::list<GpuSide::Flight>::iterator GpuSide::land(std::list<Flight>::iterator flight) {
  if (flight->fused) fused_.push_back(std::move(flight->fused));
  // An event that somebody still waits for is not used again.
  for (std::shared_ptr<DeviceEvent>* event : {&flight->begun, &flight->ended})
    if (event->use_count() == 1) events_.push_back(std::move(*event));
  return flights_.erase(flight);
}

gpu::DeviceExecution& GpuSide::port(int peer, bool sends) {
  std::unique_ptr<gpu::DeviceExecution>& port = ports_[{peer, sends}];
  if (!port) port = plans_.make_gpu_port(peer, sends, plain_messages);
  return *port;
}

}  // namespace khoro
