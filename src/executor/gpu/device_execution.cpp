// SPDX-License-Identifier: Apache-2.0
#include "executor/gpu/device_execution.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/device.h"
#include "base/error.h"
#include "executor/gpu/kernel.h"

namespace khoro::gpu {
namespace {

template <class T>
T* at(DeviceAddress address) {
  return reinterpret_cast<T*>(address);
}

DeviceAddress address_of(const void* memory) { return reinterpret_cast<std::uintptr_t>(memory); }

/// Of what a launch finds in memory of the device, the first is what blocks count on, by itself;
/// and so is the word by which they say how far they are, in memory of the host.
constexpr std::uint64_t rest_offset = Layout::to_line(sizeof(std::uint32_t));

constexpr std::uint64_t to_words(std::uint64_t bytes) noexcept { return (bytes + 7) / 8 * 8; }

/// Blocks for all calls beside others, unless each needs one: what moves as much as a GPU does.
constexpr std::uint32_t most_beside = 32;

}  // namespace

ControlPage::ControlPage(Driver& driver, int device)
    : page_(driver, device, sizeof(Words)),
      here_(reinterpret_cast<Words*>(page_.here().data())),
      there_(reinterpret_cast<Words*>(page_.in_kernels())) {}

void ControlPage::stop() noexcept { khoro::publish(here_->stop, 1u); }

Report ControlPage::report() const noexcept {
  // In this order: pairs with run_lane().
  const std::uint32_t failure = khoro::observe(here_->report.failure);
  return {failure, khoro::observe(here_->report.stopped), khoro::observe(here_->report.digest),
          khoro::observe(here_->report.peer)};
}

std::byte* DeviceScratch::at_least(std::uint64_t bytes) {
  if (bytes == 0) return nullptr;
  if (memory_.empty() || memory_.back()->bytes() < bytes) {
    // Twice as much as before at least, so that all that was grown out of is less than what is
    // used.
    const std::uint64_t last = memory_.empty() ? 0 : memory_.back()->bytes();
    std::unique_ptr<DeviceMemory> more = driver_.allocate(device_, std::max(bytes, 2 * last));
    if (shared_) more->allow_all();
    const Reached reached = driver_.reach(device_, more->address());
    held_.fetch_add(more->held(), std::memory_order_relaxed);
    memory_.push_back(std::move(more));
    reached_ = reached;
  }
  return at<std::byte>(reached_.in_kernels);
}

DeviceExecution::DeviceExecution(Image image, const Collective& collective, const DeviceSeat& seat)
    : image_(std::move(image)),
      collective_(collective),
      seat_(seat),
      layout_(image_, collective, seat.in_strands ? seat.ends.strands() : 1),
      kernel_(&seat.driver.kernel(seat.device, kernel_image(), kernel_name)) {
  memory_ = seat.arena.take(layout_.bytes());
  std::vector<std::byte> copy(layout_.bytes());
  program_ = layout_.write(copy, memory_.in_kernels);
  seat.arena.write(memory_.address, copy);
}

void DeviceExecution::open(std::uint32_t strands) {
  if (strands <= opened_) return;
  std::vector<End*> ends;
  for (std::uint32_t strand = opened_; strand < strands; ++strand)
    for (const Port& port : image_.ports)
      ends.push_back(port.sends ? seat_.ends.sender(port.peer, port.index, strand)
                                : seat_.ends.receiver(port.peer, port.index, strand));
  // Calls that run now are of strands before these.
  if (!ends.empty())
    seat_.arena.write(memory_.address + layout_.ends_of(opened_), std::as_bytes(std::span(ends)));
  opened_ = strands;
}

std::byte* DeviceExecution::in_kernels(const CallArguments& call, const void* buffer,
                                       const char* name, DeviceSet& devices) const {
  if (buffer == nullptr || call.in_kernels) return at<std::byte>(address_of(buffer));
  try {
    const Reached reached = seat_.driver.reach(seat_.device, address_of(buffer));
    devices &= reached.devices;
    return at<std::byte>(reached.in_kernels);
  } catch (const Error& error) {
    throw Error(Code::invalid_argument, fmt::format("the {} buffer: {}", name, error.what()));
  }
}

std::optional<Call> DeviceExecution::prepare(const CallArguments& call, BlockTable* table) {
  if (call.reduction == Reduction::user)
    throw Error(Code::invalid_usage, "kernels run no functions of callers");
  if (call.blocks && !table)
    throw Error(Code::invalid_usage, "blocks of unequal lengths of calls beside others");
  const CallShape shape =
      shape_of(image_, collective_, call, seat_.partials, seat_.ends.layout().slot_bytes);
  if (shape.grid.tiles() == 0 && !seat_.passes_empty) return std::nullopt;
  CallMemory memory;
  DeviceSet devices = call.in_kernels ? call.reached_by : ~DeviceSet{0};
  memory.input = in_kernels(call, call.buffers.input, "send", devices);
  memory.output = in_kernels(call, call.buffers.output, "receive", devices);
  const std::uint64_t tiles = std::max<std::uint64_t>(shape.grid.tiles(), 1);
  const auto strands =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(tiles, program_.strand_count));
  open(strands);
  memory.scratch_of_strand =
      shape.scratch_stride * static_cast<std::uint64_t>(image_.scratch_chunks);
  const std::uint64_t partials = strands * memory.scratch_of_strand;
  if (call.blocks) *table = BlockTable(image_, *call.blocks, shape.grid);
  memory.scratch = seat_.scratch.at_least(partials);
  if (partials > 0) devices &= seat_.scratch.devices();
  if (seat_.direct_bytes != UINT64_MAX) {
    const bool in_place = BufferBytes::of(collective_, call).overlap(call.buffers);
    memory.direct = {devices, seat_.direct_bytes, in_place ? stage_lends_in_place : stage_lends};
  }
  memory.weights = layout_.weights(memory_.in_kernels);
  memory.stop = seat_.control.stop_in_kernels();
  memory.report = seat_.control.report_in_kernels();
  Call asked = make_call(program_, shape, call, seat_.partials, memory);
  asked.tiles = tiles;
  return asked;
}

void FusedLaunch::note(const DeviceExecution& program) noexcept {
  kernel_ = program.kernel_;
  block_bytes_ = std::max(block_bytes_, program.layout_.block_bytes());
}

std::uint32_t FusedLaunch::add_in_turn(DeviceExecution& program, const CallArguments& call) {
  BlockTable table;
  if (const std::optional<Call> asked = program.prepare(call, &table)) {
    note(program);
    in_turn_.push_back({*asked, std::move(table)});
  }
  return static_cast<std::uint32_t>(in_turn_.size());
}

void FusedLaunch::add_beside(DeviceExecution& program, const CallArguments& call) {
  const std::optional<Call> asked = program.prepare(call, nullptr);
  if (!asked) return;
  note(program);
  const auto same = [&](const Part& part) { return part.program == &program; };
  auto part = std::find_if(beside_.begin(), beside_.end(), same);
  if (part == beside_.end()) part = beside_.insert(beside_.end(), {&program, {}});
  part->calls.push_back(*asked);
  part->strands = std::max(part->strands, asked->strands());
}

FusedLaunch::Shares FusedLaunch::least() const noexcept {
  Shares shares{0, 1};
  for (const InTurn& each : in_turn_)
    shares.in_turn = std::max(shares.in_turn, each.call.program.lane_count);
  return shares;
}

FusedLaunch::Shares FusedLaunch::most() const noexcept {
  const auto programs = static_cast<std::uint32_t>(std::max<std::size_t>(beside_.size(), 1));
  Shares shares{0, std::max(1u, most_beside / programs)};
  for (const InTurn& each : in_turn_)
    shares.in_turn = std::max(shares.in_turn, each.call.strands() * each.call.program.lane_count);
  return shares;
}

int FusedLaunch::blocks_of(const Shares& shares) const noexcept {
  std::uint32_t blocks = shares.in_turn;
  for (const Part& part : beside_) blocks += std::min(shares.beside, part.strands);
  return static_cast<int>(blocks);
}

FusedLaunch::Shares FusedLaunch::shares_of(int blocks) const noexcept {
  Shares shares = least();
  const Shares most = this->most();
  const auto spare = static_cast<std::uint32_t>(std::max(0, blocks - blocks_of(shares)));
  const std::uint32_t more = std::min(spare, most.in_turn - shares.in_turn);
  shares.in_turn += more;
  if (!beside_.empty())
    shares.beside += std::min((spare - more) / static_cast<std::uint32_t>(beside_.size()),
                              most.beside - shares.beside);
  return shares;
}

Launch FusedLaunch::shape() const noexcept {
  Launch launch;
  launch.kernel = kernel_;
  launch.blocks = blocks_of(most());
  launch.threads = threads_of_block;
  launch.shared_bytes = block_bytes_;
  return launch;
}

int FusedLaunch::least_blocks() const noexcept { return blocks_of(least()); }

std::uint64_t FusedLaunch::rest_bytes() const noexcept {
  std::uint64_t tables = 0, calls = in_turn_.empty() ? 0 : in_turn_.size() - 1;
  for (const InTurn& each : in_turn_) tables += to_words(each.table.bytes().size());
  for (const Part& part : beside_) calls += part.calls.size();
  return tables + calls == 0 ? 0 : rest_offset + tables + calls * sizeof(Call);
}

void FusedLaunch::allocate() {
  if (rest_bytes() == 0 || rest_offset + rest_bytes() <= here_.here.size()) return;
  // Twice as much, so that all that was grown out of is less than what is used.
  rest_ = arena_.take(2 * rest_bytes());
  here_ = arena_.take_pinned(rest_offset + rest_.bytes);
}

std::uint32_t FusedLaunch::passed() const noexcept {
  if (here_.here.empty()) return 0;
  return khoro::observe(*reinterpret_cast<std::uint32_t*>(here_.here.data()));
}

void FusedLaunch::copy_rest(Calls& calls, const Shares& shares, DeviceStream& stream) {
  allocate();
  std::byte* const there = rest_.in_kernels;
  const std::span<std::byte> here = here_.here.subspan(rest_offset);
  std::fill_n(here.begin(), rest_offset, std::byte{0});  // no block has arrived
  calls.arrivals = reinterpret_cast<std::uint32_t*>(there);
  calls.passed = reinterpret_cast<std::uint32_t*>(here_.in_kernels);
  std::uint64_t end = rest_offset;
  const auto add = [&](std::span<const std::byte> bytes) {
    std::copy(bytes.begin(), bytes.end(), here.subspan(end).begin());
    end += to_words(bytes.size());
  };
  for (InTurn& each : in_turn_) {
    each.table.place(each.call, there + end);
    add(each.table.bytes());
  }
  const auto add_call = [&](const Call& call) { add(std::as_bytes(std::span(&call, 1))); };
  calls.later = reinterpret_cast<const Call*>(there + end);
  for (std::size_t i = 1; i < in_turn_.size(); ++i, ++calls.later_count) add_call(in_turn_[i].call);
  calls.beside = calls.later + calls.later_count;
  std::uint32_t block = calls.blocks;
  for (Part& part : beside_) {
    const std::uint32_t blocks = std::min(shares.beside, part.strands);
    for (Call& call : part.calls) {
      call.block = block;
      call.blocks = blocks;
      add_call(call);
      ++calls.beside_count;
    }
    block += blocks;
  }
  stream.copy(rest_.address, address_of(here.data()), end);
}

void FusedLaunch::launch(DeviceStream& stream, int blocks) {
  const Shares shares = shares_of(blocks);
  Launch launch = shape();
  launch.blocks = blocks_of(shares);
  if (launch.blocks == 0) return;
  Calls calls;
  calls.blocks = shares.in_turn;
  if (rest_bytes() > 0) copy_rest(calls, shares, stream);
  if (!in_turn_.empty()) calls.first = in_turn_.front().call;
  launch.arguments = std::as_bytes(std::span(&calls, 1));
  stream.launch(launch);
}

void FusedLaunch::clear() noexcept {
  in_turn_.clear();
  beside_.clear();
  block_bytes_ = 0;
  if (!here_.here.empty()) std::fill_n(here_.here.begin(), rest_offset, std::byte{0});
}

}  // namespace khoro::gpu
