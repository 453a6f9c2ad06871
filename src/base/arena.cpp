// SPDX-License-Identifier: Apache-2.0
#include "base/arena.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <new>
#include <utility>

#include "base/error.h"
#include "base/shared_memory.h"

namespace khoro {
namespace {

constexpr std::uint64_t huge_page = 2 << 20;
/// Where addresses are limited, so much of them at most.
constexpr std::uint64_t least_part = 8;

constexpr std::uint64_t round_up(std::uint64_t bytes, std::uint64_t unit) noexcept {
  return (bytes + unit - 1) / unit * unit;
}

struct OfProcess {
  std::mutex mutex;
  std::weak_ptr<Arena> arena;
};

// Never destroyed: memory may be freed to the very end.
OfProcess& of_this_process() {
  static OfProcess& known = *new OfProcess;
  return known;
}

/// As much as there can be memory for, since its pages are counted once.
std::uint64_t bytes_for_process() {
  std::uint64_t bytes = Arena::most_bytes;
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  if (pages > 0) bytes = std::min(bytes, static_cast<std::uint64_t>(pages) * Arena::page);
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    bytes = std::min<std::uint64_t>(bytes, limit.rlim_cur / least_part);
  return std::max(bytes / huge_page, std::uint64_t{1}) * huge_page;
}

}  // namespace

std::shared_ptr<Arena> Arena::of_process() {
  OfProcess& known = of_this_process();
  const std::lock_guard lock(known.mutex);
  std::shared_ptr<Arena> arena = known.arena.lock();
  if (!arena) known.arena = arena = std::make_shared<Arena>(bytes_for_process());
  return arena;
}

std::shared_ptr<Arena> Arena::of_process_if_any() noexcept {
  OfProcess& known = of_this_process();
  const std::lock_guard lock(known.mutex);
  return known.arena.lock();
}

Arena::Arena(std::uint64_t bytes)
    : memory_(make_shared_memory("khoro memory", bytes)), bytes_(bytes) {
  free_.emplace(0, bytes_);
  // Room to begin at a huge page.
  reserved_bytes_ = bytes_ + huge_page;
  reserved_ = ::mmap(nullptr, reserved_bytes_, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved_ == MAP_FAILED)
    throw_errno(fmt::format("no addresses for {} bytes of shared memory", reserved_bytes_));
  base_ = round_up(reinterpret_cast<std::uintptr_t>(reserved_), huge_page);
  void* const base = reinterpret_cast<void*>(base_);
  if (::mmap(base, bytes_, PROT_NONE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, memory_.number(),
             0) == MAP_FAILED) {
    ::munmap(reserved_, reserved_bytes_);
    throw_errno(fmt::format("cannot map {} bytes of shared memory", bytes_));
  }
  // What is not there is not worth a place in a core file, nor the memory to write it.
  ::madvise(base, bytes_, MADV_DONTDUMP);
}

Arena::~Arena() {
  ::munmap(reserved_, reserved_bytes_);
  if (auto* const moved = moved_.load(std::memory_order_relaxed))
    ::munmap(moved, bytes_ / page * sizeof(Moved));
}

std::byte* Arena::allocate(std::uint64_t bytes) {
  const std::uint64_t size = round_up(bytes, page);
  const std::lock_guard lock(mutex_);
  std::optional<std::uint64_t> offset;
  if (bytes > 0 && bytes <= bytes_) offset = take(size);
  if (!offset)
    throw Error(Code::out_of_memory,
                fmt::format("no {} bytes in a row are left of the {} that this process can share; "
                            "free some, or use memory of another kind",
                            bytes, bytes_));
  auto* const data = reinterpret_cast<std::byte*>(base_ + *offset);
  try {
    used_.emplace(*offset, size);
  } catch (const std::bad_alloc&) {
    give_back(*offset, size);
    throw;
  }
  if (::mprotect(data, size, PROT_READ | PROT_WRITE) != 0) {
    const int cause = errno;
    used_.erase(*offset);
    give_back(*offset, size);
    throw Error(Code::out_of_memory,
                fmt::format("{} bytes cannot be made accessible: {}", size, std::strerror(cause)));
  }
  if (!self_) self_ = weak_from_this().lock();
  ::madvise(data, size, MADV_DODUMP);
  if (size >= huge_page) ::madvise(data, size, MADV_HUGEPAGE);
  return data;
}

std::optional<std::uint64_t> Arena::bytes_at(const std::byte* data) const noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = used_.find(reinterpret_cast<std::uintptr_t>(data) - base_);
  if (found == used_.end()) return std::nullopt;
  return found->second;
}

void Arena::free(std::byte* data) {
  std::shared_ptr<Arena> last;  // let go of without the lock
  const std::lock_guard lock(mutex_);
  const auto found = used_.find(reinterpret_cast<std::uintptr_t>(data) - base_);
  if (found == used_.end())
    throw Error(Code::invalid_argument, "nothing was allocated at this address");
  const auto [at, bytes] = *found;
  used_.erase(found);
  if (used_.empty()) last = std::move(self_);
  ::mprotect(data, bytes, PROT_NONE);
  ::madvise(data, bytes, MADV_DONTDUMP);
  if (const Moved* const moved = moved_.load(std::memory_order_relaxed))
    return give_back_moved(moved, at, bytes);
  give_back(at, bytes);
}

/// First fit, at a huge page if it is that long, and if that can be.
std::optional<std::uint64_t> Arena::take(std::uint64_t bytes) {
  if (bytes >= huge_page)
    if (const auto offset = take(bytes, huge_page)) return offset;
  return take(bytes, page);
}

std::optional<std::uint64_t> Arena::take(std::uint64_t bytes, std::uint64_t unit) {
  for (auto at = free_.begin(); at != free_.end(); ++at) {
    const auto [first, length] = *at;
    const std::uint64_t begin = round_up(first, unit);
    if (begin - first >= length || length - (begin - first) < bytes) continue;
    const std::uint64_t end = begin + bytes;
    if (end < first + length) free_.emplace(end, first + length - end);
    if (begin > first)
      at->second = begin - first;
    else
      free_.erase(at);
    return begin;
  }
  return std::nullopt;
}

void Arena::give_back(std::uint64_t offset, std::uint64_t bytes) {
  punch(offset, bytes);
  const auto after = free_.lower_bound(offset);
  const auto before = after == free_.begin() ? free_.end() : std::prev(after);
  const bool joins_before = before != free_.end() && before->first + before->second == offset;
  const bool joins_after = after != free_.end() && offset + bytes == after->first;
  if (joins_after) bytes += after->second;
  if (joins_before) {
    before->second += bytes;
    if (joins_after) free_.erase(after);
    return;
  }
  if (joins_after) {
    auto node = free_.extract(after);
    node.key() = offset;
    node.mapped() = bytes;
    free_.insert(std::move(node));
    return;
  }
  try {
    free_.emplace(offset, bytes);
  } catch (const std::bad_alloc&) {
    // Its pages are free, its addresses are not.
  }
}

std::optional<std::uint64_t> Arena::offset_if_whole(const Moved* moved, std::uint64_t at,
                                                    std::uint64_t bytes) const noexcept {
  const std::uint64_t first = at / page;
  const std::uint64_t last = bytes == 0 ? first : (at + bytes - 1) / page;
  const std::uint64_t there = page_of(moved, first);
  if (there == nowhere) return std::nullopt;
  for (std::uint64_t number = first + 1; number <= last; ++number)
    if (page_of(moved, number) - there != number - first) return std::nullopt;
  return there * page + at % page;
}

Arena::Moved* Arena::table_of_moved() noexcept {
  if (Moved* const known = moved_.load(std::memory_order_relaxed)) return known;
  void* const table = ::mmap(nullptr, bytes_ / page * sizeof(Moved), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (table == MAP_FAILED) return nullptr;
  moved_.store(static_cast<Moved*>(table), std::memory_order_release);  // pairs with offset_of()
  return static_cast<Moved*>(table);
}

bool Arena::move(const std::byte* data, std::uint64_t bytes) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(data) - base_;
  if (at >= bytes_ || bytes == 0 || bytes > bytes_ - at) return false;
  const std::uint64_t first = at / page;
  const std::uint64_t pages = round_up(at + bytes, page) / page - first;
  const std::uint64_t size = pages * page;
  const std::lock_guard lock(mutex_);
  Moved* const moved = table_of_moved();
  if (moved == nullptr) return false;
  std::optional<std::uint64_t> offset;
  try {
    offset = take(size);
  } catch (const std::bad_alloc&) {
  }
  // Private pages, which peers cannot see, are better than those that they can write to.
  void* const fresh =
      offset ? ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                      memory_.number(), static_cast<off_t>(*offset))
             : ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  void* const address = reinterpret_cast<void*>(base_ + first * page);
  if (fresh != MAP_FAILED) {
    std::memcpy(fresh, address, size);
    if (::mremap(fresh, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, address) != MAP_FAILED) {
      for (std::uint64_t i = 0; i < pages; ++i) {
        const std::uint64_t old = page_of(moved, first + i);
        if (old != nowhere) punch(old * page, page);
        const std::uint64_t now = offset ? *offset / page + i : nowhere;
        moved[first + i].store(static_cast<std::uint32_t>(now + 1), std::memory_order_relaxed);
      }
      return true;
    }
    ::munmap(fresh, size);
  }
  if (offset) give_back(*offset, size);
  return false;
}

void Arena::punch(std::uint64_t offset, std::uint64_t bytes) noexcept {
  ::fallocate(memory_.number(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
              static_cast<off_t>(offset), static_cast<off_t>(bytes));
}

/// Gives the pages behind freed addresses back, run by run. Where something was moved away from,
/// neither the addresses nor the old pages are used again.
void Arena::give_back_moved(const Moved* moved, std::uint64_t at, std::uint64_t bytes) {
  const std::uint64_t end = (at + bytes) / page;
  for (std::uint64_t number = at / page; number < end;) {
    const std::uint64_t there = page_of(moved, number);
    std::uint64_t length = 1;
    while (number + length < end &&
           page_of(moved, number + length) == (there == nowhere ? nowhere : there + length))
      ++length;
    if (there != nowhere)
      give_back(there * page, length * page);
    else
      ::madvise(reinterpret_cast<void*>(base_ + number * page), length * page, MADV_DONTNEED);
    number += length;
  }
}

}  // namespace khoro
