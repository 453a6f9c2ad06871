// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <utility>

namespace khoro {

/// Owns a file descriptor. -1 is none.
class Descriptor {
 public:
  Descriptor() = default;
  /// Takes over what a system call returned; errno stays what it was if that is -1. In a program
  /// that has closed its standard output it may be the number of that, and what is printed would
  /// end up in it: then it gets another number, or becomes none if there is no other.
  explicit Descriptor(int number) noexcept : number_(beyond_standard(number)) { note(number_); }
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
  static int beyond_standard(int number) noexcept {
    if (number < 0 || number > STDERR_FILENO) return number;
    const bool closes_on_exec = (::fcntl(number, F_GETFD) & FD_CLOEXEC) != 0;
    const int moved =
        ::fcntl(number, closes_on_exec ? F_DUPFD_CLOEXEC : F_DUPFD, STDERR_FILENO + 1);
    const int cause = errno;
    ::close(number);
    errno = cause;
    return moved;
  }

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
