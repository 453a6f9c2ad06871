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

}  // namespace

ControlPage::ControlPage(Driver& driver, int device) {
  void* const page =
      ::mmap(nullptr, page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
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
  return {khoro::observe(here_->report.failure), khoro::observe(here_->report.stopped)};
}

std::byte* DeviceScratch::at_least(std::uint64_t bytes) {
  if (bytes == 0) return nullptr;
  if (memory_.empty() || memory_.back()->bytes() < bytes) {
    // Twice as much as before at least, so that all that was grown out of is less than what is
    // used.
    const std::uint64_t last = memory_.empty() ? 0 : memory_.back()->bytes();
    memory_.push_back(driver_.allocate(device_, std::max(bytes, 2 * last)));
    bytes_.fetch_add(memory_.back()->bytes(), std::memory_order_relaxed);
  }
  return at<std::byte>(driver_.in_kernels(device_, memory_.back()->address()));
}

DeviceExecution::DeviceExecution(Image image, const Collective& collective, const DeviceSeat& seat)
    : image_(std::move(image)),
      collective_(collective),
      seat_(seat),
      layout_(image_, collective),
      kernel_(&seat.driver.kernel(seat.device, kernel_image(), kernel_name)) {
  resident_ = kernel_->resident_blocks(threads_of_block, layout_.block_bytes());
  const std::size_t wanted = image_.lanes.size() * static_cast<std::size_t>(seat.neighbours);
  if (static_cast<std::size_t>(resident_) < wanted)
    throw Error(Code::invalid_usage,
                fmt::format("{} ranks with a plan of {} lanes on {}, which runs {} blocks at once",
                            seat.neighbours, image_.lanes.size(),
                            seat.driver.facts(seat.device).name, resident_));
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

std::byte* DeviceExecution::in_kernels(const void* buffer, const char* name) const {
  if (buffer == nullptr) return nullptr;
  try {
    return at<std::byte>(seat_.driver.in_kernels(seat_.device, address_of(buffer)));
  } catch (const Error& error) {
    throw Error(Code::invalid_argument, fmt::format("the {} buffer: {}", name, error.what()));
  }
}

void DeviceExecution::launch(const CallArguments& call, DeviceStream& stream) {
  if (call.reduction == Reduction::user || call.blocks)
    throw Error(Code::invalid_usage,
                "kernels run neither functions of callers nor blocks of unequal lengths");
  const CallShape shape =
      shape_of(image_, collective_, call, seat_.partials, seat_.ends.layout().slot_bytes);
  if (shape.grid.tiles() == 0 && !seat_.passes_empty) return;
  CallMemory memory;
  memory.input = in_kernels(call.buffers.input, "send");
  memory.output = in_kernels(call.buffers.output, "receive");
  memory.scratch = seat_.scratch.at_least(shape.scratch_stride *
                                          static_cast<std::uint64_t>(image_.scratch_chunks));
  memory.weights = layout_.weights(there_);
  memory.stop = seat_.control.stop_in_kernels();
  memory.report = seat_.control.report_in_kernels();
  Call asked = make_call(program_, shape, call, seat_.partials, memory);
  asked.tiles = std::max<std::uint64_t>(asked.tiles, 1);
  Launch launch;
  launch.kernel = kernel_;
  launch.blocks = static_cast<int>(image_.lanes.size());
  launch.threads = threads_of_block;
  launch.shared_bytes = layout_.block_bytes();
  launch.arguments = std::as_bytes(std::span(&asked, 1));
  stream.launch(launch);
}

}  // namespace khoro::gpu
