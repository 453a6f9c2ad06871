// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cxxabi.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <stdexcept>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace khoro::test {

/// A function with a stack of its own, that runs until it gives way and goes on where it was. All
/// fibers of a thread take turns on it. An exception that leaves the function ends the fiber, and
/// is thrown on by resume().
class Fiber {
 public:
  explicit Fiber(std::function<void()> body) : body_(std::move(body)) {
    stack_ = ::mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack_ == MAP_FAILED || ::getcontext(&inside_) != 0) {
      throw std::runtime_error("no stack for a fiber");
    }
    inside_.uc_stack.ss_sp = stack_;
    inside_.uc_stack.ss_size = stack_bytes;
    const auto self = reinterpret_cast<std::uintptr_t>(this);
    ::makecontext(&inside_, reinterpret_cast<void (*)()>(&Fiber::enter), 2,
                  static_cast<unsigned>(self >> 32), static_cast<unsigned>(self));
#if defined(__SANITIZE_THREAD__)
    tsan_inside_ = __tsan_create_fiber(0);
#endif
  }
  /// Objects that live on the stack of a fiber that has not ended are not destroyed.
  ~Fiber() {
#if defined(__SANITIZE_THREAD__)
    __tsan_destroy_fiber(tsan_inside_);
#endif
    ::munmap(stack_, stack_bytes);
  }
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  bool ended() const noexcept { return ended_; }

  /// Runs the function until it gives way or ends. Not from a fiber.
  void resume() {
    exchange_exceptions();
#if defined(__SANITIZE_THREAD__)
    tsan_outside_ = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(tsan_inside_, 0);
#endif
#if defined(__SANITIZE_ADDRESS__)
    void* fake = nullptr;
    __sanitizer_start_switch_fiber(&fake, stack_, stack_bytes);
#endif
    ::swapcontext(&outside_, &inside_);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
    exchange_exceptions();
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

  /// From inside: back to whoever resumed.
  void give_way() noexcept {
    // Sanitizers follow each stack: they are told of the switch by the very function that makes it.
#if defined(__SANITIZE_THREAD__)
    __tsan_switch_to_fiber(tsan_outside_, 0);
#endif
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(ended_ ? nullptr : &asan_fake_, asan_outside_,
                                   asan_outside_bytes_);
#endif
    ::swapcontext(&inside_, &outside_);
    arrive();
  }

 private:
  static constexpr std::size_t stack_bytes = 1 << 20;

  static void enter(unsigned high, unsigned low) {
    auto* self = reinterpret_cast<Fiber*>(std::uintptr_t{high} << 32 | low);
    self->arrive();
    try {
      self->body_();
    } catch (...) {
      self->failure_ = std::current_exception();
    }
    self->ended_ = true;
    self->give_way();  // for good
  }

  void arrive() noexcept {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(asan_fake_, &asan_outside_, &asan_outside_bytes_);
#endif
  }

  // The language keeps, per thread, a list of the exceptions being handled; each stack needs its
  // own. The runtime's struct is a pointer and a count.
  void exchange_exceptions() noexcept {
    std::byte mine[16];
    void* globals = abi::__cxa_get_globals();
    std::memcpy(mine, globals, sizeof mine);
    std::memcpy(globals, exceptions_, sizeof mine);
    std::memcpy(exceptions_, mine, sizeof mine);
  }

  std::function<void()> body_;
  void* stack_ = nullptr;
  ucontext_t inside_{};
  ucontext_t outside_{};
  bool ended_ = false;
  std::exception_ptr failure_;
  std::byte exceptions_[16]{};
#if defined(__SANITIZE_ADDRESS__)
  void* asan_fake_ = nullptr;
  const void* asan_outside_ = nullptr;
  std::size_t asan_outside_bytes_ = 0;
#endif
#if defined(__SANITIZE_THREAD__)
  void* tsan_inside_ = nullptr;
  void* tsan_outside_ = nullptr;
#endif
};

}  // namespace khoro::test
