// SPDX-License-Identifier: Apache-2.0
#include "communicator/gpu_side.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/log.h"

namespace khoro {
GpuSide::GpuSide(Parts parts, const Settings& settings, int rank, int ranks)
    : driver_(parts.driver),
      device_(parts.device),
      channels_(std::move(parts.channels)),
      control_(*driver_, device_),
      scratch_(*driver_, device_),
      plans_(rank, ranks, settings,
             gpu::DeviceSeat{*driver_, device_, *channels_, control_, scratch_, Partials::dtype,
                             parts.neighbours}),
      forked_(driver_->make_event(device_)),
      joined_(driver_->make_event(device_)),
      neighbours_(parts.neighbours),
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

void GpuSide::check_reach(const void* buffer, std::uint64_t bytes, const char* name) const {
  const auto address = static_cast<DeviceAddress>(reinterpret_cast<std::uintptr_t>(buffer));
  const auto refuse = [&](const std::string& why) {
    throw Error(
        Code::invalid_argument,
        fmt::format("the {} buffer is no memory that GPU {} reaches: {}", name, device_, why));
  };
  try {
    (void)driver_->in_kernels(device_, address);
  } catch (const Error& error) {
    refuse(error.what());
  }
  const AddressFacts facts = driver_->facts(address);
  const std::uint64_t left = facts.begin + facts.bytes - address;
  if (facts.kind == AddressFacts::Kind::device && bytes > left)
    refuse(fmt::format("{} bytes from there are left of its allocation, and the call has {}", left,
                       bytes));
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

GpuSide::Flight& GpuSide::fly(gpu::DeviceExecution& program, const CallArguments& arguments,
                              DeviceStream& stream) {
  Flight& flight = flights_.emplace_back();
  try {
    flight.begun = take_event();
    flight.ended = take_event();
    stream.record(*flight.begun);
    program.launch(arguments, stream);
    stream.record(*flight.ended);
  } catch (...) {
    flights_.pop_back();
    throw;
  }
  return flight;
}

GpuSide::Flight& GpuSide::launch(gpu::DeviceExecution& program, const CallArguments& arguments,
                                 DeviceStream& stream) {
  return fly(program, arguments, stream);
}

GpuSide::Flight& GpuSide::launch_message(int peer, bool sends, const CallArguments& arguments) {
  Port& port = this->port(peer, sends);
  if (!port.open) port.stream->wait(*forked_);
  port.open = true;
  Flight& flight = fly(*port.program, arguments, *port.stream);
  port.stream->record(*port.ended);
  return flight;
}

void GpuSide::join(DeviceStream& stream) {
  for (auto& [name, port] : ports_) {
    if (!port.open) continue;
    port.open = false;
    stream.wait(*port.ended);
  }
  stream.record(*joined_);
}

std::list<GpuSide::Flight>::iterator GpuSide::land(std::list<Flight>::iterator flight) {
  // One that somebody still waits for is not used again.
  for (std::shared_ptr<DeviceEvent>* event : {&flight->begun, &flight->ended})
    if (event->use_count() == 1) events_.push_back(std::move(*event));
  return flights_.erase(flight);
}

GpuSide::Port& GpuSide::port(int peer, bool sends) {
  Port& port = ports_[{peer, sends}];
  if (port.program) return port;
  port.program = plans_.make_gpu_port(peer, sends, plain_messages);
  const std::size_t wanted = ports_.size() * static_cast<std::size_t>(neighbours_);
  if (wanted > static_cast<std::size_t>(port.program->resident_blocks()))
    throw Error(Code::invalid_usage,
                fmt::format("{} messages at once, of each of {} ranks, on {}, which runs {} blocks "
                            "at once",
                            ports_.size(), neighbours_, driver_->facts(device_).name,
                            port.program->resident_blocks()));
  port.stream = driver_->make_stream(device_);
  port.ended = driver_->make_event(device_);
  return port;
}

}  // namespace khoro
