// SPDX-License-Identifier: Apache-2.0
#include "executor/gpu/device_arena.h"

#include <algorithm>
#include <utility>

#include "executor/gpu/channel.h"

namespace khoro::gpu {
namespace {

/// What CUDA's devices give out at least.
constexpr std::uint64_t device_page = 2 << 20;

/// Enough for a group of some hundred calls.
constexpr std::uint64_t pinned_piece = 64 << 10;

}  // namespace

DeviceArena::Piece DeviceArena::take(std::uint64_t bytes) {
  const std::uint64_t taken = Layout::to_line(bytes);
  if (left_.bytes < taken) {
    std::unique_ptr<DeviceMemory> more = driver_.allocate(device_, std::max(taken, device_page));
    auto* const in_kernels =
        reinterpret_cast<std::byte*>(driver_.in_kernels(device_, more->address()));
    memory_.push_back(std::move(more));
    left_ = {memory_.back()->address(), in_kernels, memory_.back()->bytes()};
    held_.fetch_add(memory_.back()->held(), std::memory_order_relaxed);
  }
  const Piece piece{left_.address, left_.in_kernels, bytes};
  left_ = {left_.address + taken, left_.in_kernels + taken, left_.bytes - taken};
  return piece;
}

void DeviceArena::write(DeviceAddress to, std::span<const std::byte> from) {
  if (!stream_) stream_ = driver_.make_stream(device_);
  stream_->copy(to, reinterpret_cast<std::uintptr_t>(from.data()), from.size());
  stream_->synchronize();
}

DeviceArena::Pinned DeviceArena::take_pinned(std::uint64_t bytes) {
  const std::uint64_t taken = Layout::to_line(bytes);
  if (pinned_.empty() || pinned_.back()->here().size() - pinned_used_ < taken) {
    auto more = std::make_unique<PinnedPages>(driver_, device_, std::max(taken, pinned_piece));
    pinned_.push_back(std::move(more));
    pinned_used_ = 0;
    held_.fetch_add(pinned_.back()->here().size(), std::memory_order_relaxed);
  }
  const PinnedPages& pages = *pinned_.back();
  const std::uint64_t at = std::exchange(pinned_used_, pinned_used_ + taken);
  return {pages.here().subspan(at, bytes), pages.in_kernels() + at};
}

}  // namespace khoro::gpu
