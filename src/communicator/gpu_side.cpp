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
      arena_(*driver_, device_),
      channels_(std::move(parts.channels), arena_),
      control_(*driver_, device_),
      scratch_(*driver_, device_, settings.direct_bytes > 0),
      plans_(rank, ranks, settings,
             gpu::DeviceSeat{*driver_, device_, arena_, channels_, control_, scratch_,
                             Partials::dtype, false, direct_bytes_of(settings)}),
      residency_(GpuResidency::of(*driver_, device_), parts.communicator, parts.neighbours),
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

GpuSide::Flights GpuSide::take() {
  Flights taken;
  // An event that somebody still waits for is not used again.
  const auto free = std::find_if(landed_.begin(), landed_.end(), [](const Flight& flight) {
    return flight.begun.use_count() == 1 && flight.ended.use_count() == 1;
  });
  if (free != landed_.end()) {
    taken.splice(taken.end(), landed_, free);
    Flight& flight = taken.front();
    flight.calls.clear();
    flight.awaited = flight.drained = false;
    return taken;
  }
  Flight& flight = taken.emplace_back(arena_);
  flight.begun = driver_->make_event(device_);
  flight.ended = driver_->make_event(device_);
  return taken;
}

void GpuSide::launch(Flights taken, DeviceStream& stream) {
  if (!flights_.empty()) stream.wait(*flights_.back().ended);
  Flight& flight = taken.front();
  GpuResidency::Turn turn =
      residency_.enter(flight.calls.shape(), flight.calls.least_blocks(), stream);
  flights_.splice(flights_.end(), taken);
  queued_ += flight.weight();
  try {
    stream.record(*flight.begun);
    flight.calls.launch(stream, turn.blocks());
  } catch (...) {
    // What was queued all the same uses memory of the flight, which lasts until it has ended.
    stream.record(*flight.ended);
    throw;
  }
  stream.record(*flight.ended);
  turn.launched(flight.ended);
}

void GpuSide::land() noexcept {
  queued_ -= flights_.front().weight();
  flights_.front().operations.clear();
  landed_.splice(landed_.end(), flights_, flights_.begin());
}

gpu::DeviceExecution& GpuSide::port(int peer, bool sends) {
  std::unique_ptr<gpu::DeviceExecution>& port = ports_[{peer, sends}];
  if (!port) port = plans_.make_gpu_port(peer, sends, plain_messages);
  return *port;
}

}  // namespace khoro
