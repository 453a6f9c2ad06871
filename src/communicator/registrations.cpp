// SPDX-License-Identifier: Apache-2.0
#include "communicator/registrations.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "base/arena.h"
#include "base/error.h"

namespace khoro {
namespace {

/// The system looks for holes, and does nothing else that a caller could notice.
bool is_mapped(std::uintptr_t first, std::uintptr_t end) noexcept {
  const std::uintptr_t page = first & ~(Arena::page - 1);
  return ::msync(reinterpret_cast<void*>(page), end - page, MS_ASYNC) == 0 || errno != ENOMEM;
}

}  // namespace

std::uint64_t Registrations::add(const std::byte* data, std::uint64_t bytes) {
  static std::atomic<std::uint64_t> last{0};
  const auto first = reinterpret_cast<std::uintptr_t>(data);
  std::uintptr_t end = 0;
  if (__builtin_add_overflow(first, bytes, &end) || !is_mapped(first, end))
    throw Error(Code::invalid_argument,
                fmt::format("{} bytes at {} are not all mapped; register memory that is there",
                            bytes, static_cast<const void*>(data)));
  const std::lock_guard lock(mutex_);
  const std::uint64_t number = last.fetch_add(1, std::memory_order_relaxed) + 1;
  all_.emplace(number, Range{first, end});
  return number;
}

bool Registrations::remove(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  return all_.erase(number) > 0;
}

bool Registrations::touch(const std::byte* data, std::uint64_t bytes) const {
  const auto first = reinterpret_cast<std::uintptr_t>(data);
  const std::lock_guard lock(mutex_);
  return std::any_of(all_.begin(), all_.end(), [&](const auto& each) {
    return each.second.first < first + bytes && first < each.second.end;
  });
}

}  // namespace khoro
