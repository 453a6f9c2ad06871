// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <utility>

namespace khoro {

/// Owns a file descriptor. -1 is none.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) noexcept : number_(number) { note(number); }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0 && forget(number_)) ::close(number_);
  }

  int number() const noexcept { return number_; }
  explicit operator bool() const noexcept { return number_ >= 0; }
  int take() noexcept {
    if (number_ >= 0) forget(number_);
    return std::exchange(number_, -1);
  }

  /// Closes all that are owned, for a forked child, which shares them with its parent; their owners
  /// do not close them again. Async-signal-safe.
  static void close_all() noexcept {
    for (int number = 0; number < most; ++number)
      if (owned_[word(number)].load(std::memory_order_relaxed) != 0 && is_owned(number) &&
          forget(number))
        ::close(number);
  }

 private:
  // Higher numbers are owned as well, but not closed by close_all().
  static constexpr int most = 65'536;

  static std::size_t word(int number) noexcept { return static_cast<std::size_t>(number) / 64; }
  static std::uint64_t bit(int number) noexcept { return std::uint64_t{1} << (number % 64); }
  static bool is_owned(int number) noexcept {
    return (owned_[word(number)].load(std::memory_order_relaxed) & bit(number)) != 0;
  }
  static void note(int number) noexcept {
    if (number >= 0 && number < most)
      owned_[word(number)].fetch_or(bit(number), std::memory_order_relaxed);
  }
  /// False if close_all() has closed it.
  static bool forget(int number) noexcept {
    if (number >= most) return true;
    return (owned_[word(number)].fetch_and(~bit(number), std::memory_order_relaxed) &
            bit(number)) != 0;
  }

  static inline std::array<std::atomic<std::uint64_t>, most / 64> owned_{};
  int number_ = -1;
};

}  // namespace khoro
