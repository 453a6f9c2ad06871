// SPDX-License-Identifier: Apache-2.0
#include "executor/gpu/device_arena.h"

#include <algorithm>
#include <utility>

#include "executor/gpu/channel.h"

namespace khoro::gpu {
namespace {

/// What CUDA's devices give out at least.
constexpr std::uint64_t device_page = 2 << 20;

}  // namespace

DeviceArena::Piece DeviceArena::take(std::uint64_t bytes) {
  const std::uint64_t taken = Layout::to_line(bytes);
  if (left_.bytes < taken) {
    std::unique_ptr<DeviceMemory> more = driver_.allocate(device_, std::max(taken, device_page));
    auto* const in_kernels =
        reinterpret_cast<std::byte*>(driver_.in_kernels(device_, more->address()));
    left_ = {more->address(), in_kernels, more->bytes()};
    held_.fetch_add(more->held(), std::memory_order_relaxed);
    memory_.push_back(std::move(more));
  }
  const Piece piece{left_.address, left_.in_kernels, bytes};
  left_ = {left_.address + taken, left_.in_kernels + taken, left_.bytes - taken};
  return piece;
}

}  // namespace khoro::gpu
