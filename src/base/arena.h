// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "base/descriptor.h"

namespace khoro {

/// Memory of a process that others map too: their ranks read in place what lies here, and write to
/// what is offered to them. One sparse memfd, mapped once; peers see all of it and name places by
/// their offset, so that nothing is exchanged when memory is taken. Pages cost memory once they are
/// touched, and huge ones back long pieces where the system has them.
///
/// An address keeps its offset as long as it is not moved (see move()). Thread-safe.
class Arena : public std::enable_shared_from_this<Arena> {
 public:
  static constexpr std::uint64_t page = 4096;
  /// Every peer maps all of it: a few hundred of them must fit into the addresses of a process.
  static constexpr std::uint64_t most_bytes = std::uint64_t{256} << 30;

  /// The one of this process, made if there is none. It lives as long as somebody holds it, and as
  /// long as memory of it is allocated. Throws `Error`.
  static std::shared_ptr<Arena> of_process();
  /// The same, but null if there is none.
  static std::shared_ptr<Arena> of_process_if_any() noexcept;

  /// `bytes` of addresses, whole pages. Throws `Error`.
  explicit Arena(std::uint64_t bytes);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// To be shown to peers. Lives as long as the arena.
  int descriptor() const noexcept { return memory_.number(); }

  /// Whole pages, zeroed; if there are so many, at an address of huge pages if that can be. Throws
  /// out_of_memory.
  std::byte* allocate(std::uint64_t bytes);
  /// The piece at `data` as it was allocated; nothing if there is none.
  std::optional<std::uint64_t> bytes_at(const std::byte* data) const noexcept;
  /// Gives the memory back to the system at once. Throws invalid_argument unless `data` was
  /// allocated and not freed.
  void free(std::byte* data);

  /// Where peers find what lies at `data`; nothing if it is not here, or not in one piece there.
  /// Never blocks; it costs a few loads.
  std::optional<std::uint64_t> offset_of(const std::byte* data,
                                         std::uint64_t bytes) const noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(data) - base_;
    if (at >= bytes_ || bytes > bytes_ - at) return std::nullopt;
    const Moved* const moved = moved_.load(std::memory_order_acquire);
    return moved == nullptr ? at : offset_if_whole(moved, at, bytes);
  }

  /// Puts fresh pages with the same contents in the place of those that `bytes` at `data` touch:
  /// the addresses stay, and who has the old pages mapped neither sees nor changes what is there
  /// from now on. The old ones are never used again. Nobody here writes to these pages meanwhile.
  /// False if the system has no memory for it: then nothing has changed.
  bool move(const std::byte* data, std::uint64_t bytes) noexcept;

 private:
  using Ranges = std::map<std::uint64_t, std::uint64_t>;  // offset -> bytes
  /// The page of the file that a page of addresses was moved to, and 1; 0: it never was.
  using Moved = std::atomic<std::uint32_t>;
  static constexpr std::uint64_t nowhere = ~std::uint32_t{0} - 1;  // to private pages

  static std::uint64_t page_of(const Moved* moved, std::uint64_t number) noexcept {
    const std::uint32_t other = moved[number].load(std::memory_order_relaxed);
    return other == 0 ? number : std::uint64_t{other} - 1;
  }
  std::optional<std::uint64_t> offset_if_whole(const Moved* moved, std::uint64_t at,
                                               std::uint64_t bytes) const noexcept;
  Moved* table_of_moved() noexcept;
  std::optional<std::uint64_t> take(std::uint64_t bytes);
  std::optional<std::uint64_t> take(std::uint64_t bytes, std::uint64_t unit);
  void give_back(std::uint64_t offset, std::uint64_t bytes);
  void give_back_moved(const Moved* moved, std::uint64_t at, std::uint64_t bytes);
  void punch(std::uint64_t offset, std::uint64_t bytes) noexcept;

  Descriptor memory_;
  std::uint64_t bytes_;
  std::uintptr_t base_ = 0;  // address of offset 0
  void* reserved_ = nullptr;
  std::size_t reserved_bytes_ = 0;
  std::atomic<Moved*> moved_{nullptr};  // by page of addresses; null until something was moved
  mutable std::mutex mutex_;            // of what follows
  Ranges used_;
  Ranges free_;
  std::shared_ptr<Arena> self_;  // while something is allocated, if it is shared at all
};

}  // namespace khoro
