// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <climits>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "executor/gpu/device_execution.h"
#include "support/job.h"

namespace khoro::test {

/// Channels between ranks of this process over memory of their devices.
class DeviceNetwork {
 public:
  DeviceNetwork(Driver& driver, std::vector<int> device_of_rank, const gpu::Layout& layout,
                std::uint32_t strands = 1)
      : driver_(driver), devices_(std::move(device_of_rank)), layout_(layout), strands_(strands) {}

  const gpu::Layout& layout() const { return layout_; }
  /// Those of programs of several strands lie between any two ranks.
  std::uint32_t strands() const { return strands_; }
  gpu::End* end(int from, int to, std::uint8_t index, std::uint32_t strand, bool sends) {
    Channel& channel = channels_[{from, to, index, strand}];
    if (!channel.of_receiver) open(channel, devices_[std::size_t(from)], devices_[std::size_t(to)]);
    return sends ? channel.sender.there : channel.receiver.there;
  }

 private:
  struct Placed {
    std::unique_ptr<DeviceMemory> memory;
    gpu::End* there = nullptr;
  };
  struct Channel {
    std::unique_ptr<DeviceMemory> of_receiver, of_sender;
    Placed sender, receiver;
  };

  std::byte* seen(int device, const DeviceMemory& memory) {
    return reinterpret_cast<std::byte*>(driver_.in_kernels(device, memory.address()));
  }
  Placed place(int device, const Channel& channel) {
    const gpu::End end =
        gpu::end_at(layout_, seen(device, *channel.of_receiver), seen(device, *channel.of_sender));
    Placed placed{driver_.allocate(device, sizeof end)};
    const auto stream = driver_.make_stream(device);
    stream->copy(placed.memory->address(), reinterpret_cast<std::uintptr_t>(&end), sizeof end);
    stream->synchronize();
    placed.there = reinterpret_cast<gpu::End*>(seen(device, *placed.memory));
    return placed;
  }
  void open(Channel& channel, int from, int to) {
    channel.of_receiver = driver_.allocate(to, layout_.receiver_bytes());
    channel.of_sender = driver_.allocate(from, layout_.sender_bytes());
    if (from != to) {
      channel.of_receiver->allow(from);
      channel.of_sender->allow(to);
    }
    channel.sender = place(from, channel);
    channel.receiver = place(to, channel);
  }

  Driver& driver_;
  std::vector<int> devices_;
  gpu::Layout layout_;
  std::uint32_t strands_;
  std::map<std::tuple<int, int, std::uint8_t, std::uint32_t>, Channel> channels_;
};

class DeviceNetworkEnds final : public gpu::DeviceEnds {
 public:
  DeviceNetworkEnds(DeviceNetwork& network, int rank) : network_(network), rank_(rank) {}
  const gpu::Layout& layout() const noexcept override { return network_.layout(); }
  std::uint32_t strands() const noexcept override { return network_.strands(); }
  gpu::End* sender(int peer, std::uint8_t index, std::uint32_t strand) override {
    return network_.end(rank_, peer, index, strand, true);
  }
  gpu::End* receiver(int peer, std::uint8_t index, std::uint32_t strand) override {
    return network_.end(peer, rank_, index, strand, false);
  }

 private:
  DeviceNetwork& network_;
  int rank_;
};

/// All ranks of a plan on devices, in one process.
class DeviceJob {
 public:
  /// The plan and the driver outlive it. Rank r has device r modulo their number.
  DeviceJob(const Plan& plan, Driver& driver, const gpu::Layout& layout, std::uint32_t strands = 1)
      : driver_(driver), network_(driver, devices_of(plan, driver), layout, strands), data_(plan) {
    for (int rank = 0; rank < plan.collective.ranks; ++rank) {
      const int device = rank % driver.devices();
      auto& made = *ranks_.emplace_back(std::make_unique<Rank>(network_, rank, driver, device));
      made.execution =
          std::make_unique<gpu::DeviceExecution>(flatten(plan, rank), plan.collective,
                                                 gpu::DeviceSeat{.driver = driver,
                                                                 .device = device,
                                                                 .arena = made.arena,
                                                                 .ends = made.ends,
                                                                 .control = made.control,
                                                                 .scratch = made.scratch,
                                                                 .in_strands = true});
      made.stream = driver.make_stream(device);
    }
  }

  /// Queues a call on all ranks.
  void start(const JobCall& call) {
    data_.draw(call);
    // All memory first: a driver may let who allocates wait for kernels, which wait for other
    // ranks.
    for (std::size_t i = 0; i < ranks_.size(); ++i) bring(*ranks_[i], data_.buffers(int(i)).all());
    for (std::size_t i = 0; i < ranks_.size(); ++i) launch(*ranks_[i], call, int(i));
  }
  /// Waits for all, and sees whether outputs are right and all else is as it was.
  bool finish(const JobCall& call) {
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      Rank& rank = *ranks_[i];
      const std::span<std::byte> all = data_.buffers(int(i)).all();
      rank.stream->copy(address(all.data()), rank.buffers->address(), all.size());
      rank.stream->synchronize();
      if (rank.control.report().failure == 0 && rank.control.report().stopped == 0) continue;
      for (auto& each : ranks_) each->control.stop();  // who waits for it waits no longer
      return false;
    }
    return data_.right(call, network_.layout().slot_bytes);
  }
  bool run(const JobCall& call) {
    start(call);
    return finish(call);
  }

  gpu::ControlPage& control(int rank) { return ranks_[std::size_t(rank)]->control; }
  DeviceStream& stream(int rank) { return *ranks_[std::size_t(rank)]->stream; }
  /// Queues a call on one rank.
  void launch(int rank, const CallArguments& arguments) {
    Rank& its = *ranks_[std::size_t(rank)];
    its.calls.clear();
    its.calls.add_in_turn(*its.execution, arguments);
    its.calls.launch(*its.stream, narrow_ ? its.calls.least_blocks() + rank : INT_MAX);
  }
  /// Each rank has as few blocks as it can do with, and so many more as its number says.
  void narrow() { narrow_ = true; }

 private:
  struct Rank {
    Rank(DeviceNetwork& network, int rank, Driver& driver, int on)
        : device(on),
          ends(network, rank),
          control(driver, on),
          arena(driver, on),
          scratch(driver, on),
          calls(arena) {}
    int device;
    DeviceNetworkEnds ends;
    gpu::ControlPage control;
    gpu::DeviceArena arena;
    gpu::DeviceScratch scratch;
    std::unique_ptr<gpu::DeviceExecution> execution;
    gpu::FusedLaunch calls;
    std::unique_ptr<DeviceMemory> buffers;
    std::unique_ptr<DeviceStream> stream;  // ends before what it uses
  };

  static std::vector<int> devices_of(const Plan& plan, const Driver& driver) {
    std::vector<int> devices;
    for (int rank = 0; rank < plan.collective.ranks; ++rank)
      devices.push_back(rank % driver.devices());
    return devices;
  }
  static DeviceAddress address(const void* memory) {
    return reinterpret_cast<std::uintptr_t>(memory);
  }

  void bring(Rank& rank, std::span<std::byte> all) {
    rank.buffers = driver_.allocate(rank.device, all.size());
    rank.stream->copy(rank.buffers->address(), address(all.data()), all.size());
  }
  void launch(Rank& rank, const JobCall& call, int number) {
    JobBuffers& buffers = data_.buffers(number);
    const std::span<std::byte> all = buffers.all();
    const auto on_device = [&](const std::byte* data) {
      return reinterpret_cast<std::byte*>(rank.buffers->address() + std::size_t(data - all.data()));
    };
    CallArguments arguments = data_.arguments(call, number);
    arguments.buffers = {on_device(buffers.input()), on_device(buffers.output())};
    launch(number, arguments);
  }

  Driver& driver_;
  DeviceNetwork network_;
  JobData data_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  bool narrow_ = false;
};

}  // namespace khoro::test
