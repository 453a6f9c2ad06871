// SPDX-License-Identifier: Apache-2.0
#include "executor/gpu/device_execution.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/device.h"
#include "base/error.h"
#include "base/system.h"
#include "device/arguments.h"
#include "executor/gpu/kernel.h"

namespace khoro::gpu {
namespace {

template <class T>
T* at(DeviceAddress address) {
  return reinterpret_cast<T*>(address);
}

DeviceAddress address_of(const void* memory) { return reinterpret_cast<std::uintptr_t>(memory); }

/// Lanes wait for each other, so the device must run all of them at once, and those of the other
/// ranks that it has.
void check_resident(const Driver& driver, int device, const Kernel& kernel, std::size_t lanes,
                    int neighbours, std::uint32_t block_bytes) {
  const int resident = kernel.resident_blocks(threads_of_block, block_bytes);
  if (lanes * static_cast<std::size_t>(neighbours) <= static_cast<std::size_t>(resident)) return;
  throw Error(Code::invalid_usage,
              fmt::format("{} lanes of each of {} ranks on {}, which runs {} blocks at once", lanes,
                          neighbours, driver.facts(device).name, resident));
}

}  // namespace

ControlPage::ControlPage(Driver& driver, int device) {
  // Shared, so that a fork of the process does not give it another page than the one pinned.
  void* const page =
      ::mmap(nullptr, page_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) throw_errno("a page that kernels see");
  here_ = static_cast<Words*>(page);
  try {
    pinned_ = driver.pin({static_cast<std::byte*>(page), page_bytes()});
    there_ = at<Words>(driver.in_kernels(device, pinned_->address()));
  } catch (...) {
    pinned_.reset();
    ::munmap(page, page_bytes());
    throw;
  }
}

ControlPage::~ControlPage() {
  pinned_.reset();
  ::munmap(here_, page_bytes());
}

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
    bytes_.fetch_add(more->bytes(), std::memory_order_relaxed);
    memory_.push_back(std::move(more));
    reached_ = reached;
  }
  return at<std::byte>(reached_.in_kernels);
}

DeviceExecution::DeviceExecution(Image image, const Collective& collective, const DeviceSeat& seat)
    : image_(std::move(image)),
      collective_(collective),
      seat_(seat),
      layout_(image_, collective),
      kernel_(&seat.driver.kernel(seat.device, kernel_image(), kernel_name)) {
  check_resident(seat.driver, seat.device, *kernel_, image_.lanes.size(), seat.neighbours,
                 layout_.block_bytes());
  memory_ = seat.driver.allocate(seat.device, layout_.bytes());
  there_ = at<std::byte>(seat.driver.in_kernels(seat.device, memory_->address()));
  write();
}

void DeviceExecution::write() {
  std::vector<End*> ends;
  for (const Port& port : image_.ports)
    ends.push_back(port.sends ? seat_.ends.sender(port.peer, port.index)
                              : seat_.ends.receiver(port.peer, port.index));
  std::vector<std::byte> copy(layout_.bytes());
  program_ = layout_.write(copy, there_, ends);
  const std::unique_ptr<DeviceStream> stream = seat_.driver.make_stream(seat_.device);
  stream->copy(memory_->address(), address_of(copy.data()), copy.size());
  stream->synchronize();
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

std::optional<Call> DeviceExecution::prepare(const CallArguments& call, PlacedBlocks* blocks) {
  if (call.reduction == Reduction::user)
    throw Error(Code::invalid_usage, "kernels run no functions of callers");
  if (call.blocks && !blocks)
    throw Error(Code::invalid_usage, "blocks of unequal lengths need a launch that copies them");
  const CallShape shape =
      shape_of(image_, collective_, call, seat_.partials, seat_.ends.layout().slot_bytes);
  if (shape.grid.tiles() == 0 && !seat_.passes_empty) return std::nullopt;
  CallMemory memory;
  DeviceSet devices = call.in_kernels ? call.reached_by : ~DeviceSet{0};
  memory.input = in_kernels(call, call.buffers.input, "send", devices);
  memory.output = in_kernels(call, call.buffers.output, "receive", devices);
  const std::uint64_t partials =
      shape.scratch_stride * static_cast<std::uint64_t>(image_.scratch_chunks);
  if (call.blocks) blocks->table = BlockTable(image_, *call.blocks, shape.grid);
  memory.scratch =
      seat_.scratch.at_least(partials + (call.blocks ? blocks->table.bytes().size() : 0));
  if (partials > 0) devices &= seat_.scratch.devices();
  if (seat_.direct_bytes != UINT64_MAX) {
    const bool in_place = BufferBytes::of(collective_, call).overlap(call.buffers);
    memory.direct = {devices, seat_.direct_bytes, in_place ? stage_lends_in_place : stage_lends};
  }
  memory.weights = layout_.weights(there_);
  memory.stop = seat_.control.stop_in_kernels();
  memory.report = seat_.control.report_in_kernels();
  Call asked = make_call(program_, shape, call, seat_.partials, memory);
  asked.tiles = std::max<std::uint64_t>(asked.tiles, 1);
  if (call.blocks) {
    blocks->table.place(asked, memory.scratch + partials);  // whose strides are lines
    blocks->at = seat_.scratch.address() + partials;
  }
  return asked;
}

void DeviceExecution::launch(const CallArguments& call, DeviceStream& stream) {
  const std::optional<Call> asked = prepare(call);
  if (!asked) return;
  Launch launch;
  launch.kernel = kernel_;
  launch.blocks = static_cast<int>(image_.lanes.size());
  launch.threads = threads_of_block;
  launch.shared_bytes = layout_.block_bytes();
  launch.arguments = std::as_bytes(std::span(&*asked, 1));
  stream.launch(launch);
}

void FusedLaunch::note(const DeviceExecution& program) noexcept {
  kernel_ = program.kernel_;
  neighbours_ = program.seat_.neighbours;
  block_bytes_ = std::max(block_bytes_, program.layout_.block_bytes());
}

void FusedLaunch::add_wide(DeviceExecution& program, const CallArguments& call) {
  const std::optional<Call> asked = program.prepare(call, &blocks_);
  if (!asked) return;
  note(program);
  wide_ = *asked;
}

void FusedLaunch::add(DeviceExecution& program, const CallArguments& call) {
  const std::optional<Call> asked = program.prepare(call);
  if (!asked) return;
  note(program);
  const auto same = [&](const Part& part) { return part.program == &program; };
  auto part = std::find_if(parts_.begin(), parts_.end(), same);
  if (part == parts_.end()) part = parts_.insert(parts_.end(), {&program, {}});
  part->calls.push_back(*asked);
}

void FusedLaunch::launch(DeviceStream& stream) {
  std::uint32_t blocks = wide_.program.lane_count;
  if (blocks + parts_.size() == 0) return;
  for (Part& part : parts_) {
    for (Call& call : part.calls) call.block = blocks;
    ++blocks;
    beside_.insert(beside_.end(), part.calls.begin(), part.calls.end());
  }
  check_resident(driver_, device_, *kernel_, blocks, neighbours_, block_bytes_);
  // One collective of a rank follows the other, and so do copies of their blocks to one place.
  const std::span<const std::byte> table = blocks_.table.bytes();
  if (!table.empty()) stream.copy(blocks_.at, address_of(table.data()), table.size());
  const std::uint64_t bytes = beside_.size() * sizeof(Call);
  if (bytes > 0) {
    if (!memory_ || memory_->bytes() < bytes) memory_ = driver_.allocate(device_, 2 * bytes);
    stream.copy(memory_->address(), address_of(beside_.data()), bytes);
    wide_.beside = at<const Call>(driver_.in_kernels(device_, memory_->address()));
    wide_.beside_count = static_cast<std::uint32_t>(beside_.size());
  }
  Launch launch;
  launch.kernel = kernel_;
  launch.blocks = static_cast<int>(blocks);
  launch.threads = threads_of_block;
  launch.shared_bytes = block_bytes_;
  launch.arguments = std::as_bytes(std::span(&wide_, 1));
  stream.launch(launch);
}

void FusedLaunch::clear() noexcept {
  wide_ = Call();
  blocks_ = {};
  parts_.clear();
  beside_.clear();
  block_bytes_ = 0;
}

}  // namespace khoro::gpu
