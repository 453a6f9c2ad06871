// SPDX-License-Identifier: Apache-2.0
#include "base/doorbell.h"

#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

#include "base/error.h"
#include "base/sleepers.h"

namespace khoro {
namespace {

#ifdef KHORO_TEST_SWITCHES
std::atomic<std::uint64_t> lose_period{0};
std::atomic<std::uint64_t> wakeups{0};

bool is_lost() noexcept {
  const std::uint64_t period = lose_period.load(std::memory_order_relaxed);
  return period != 0 && wakeups.fetch_add(1, std::memory_order_relaxed) % period == period - 1;
}
#else
constexpr bool is_lost() noexcept { return false; }
#endif

}  // namespace

void Doorbell::wake() const noexcept {
  if (is_lost()) return;
  const int saved = errno;  // the data path must not disturb the caller's
  // Whoever takes the announcement wakes; the others find the sleeper awake.
  const std::uint32_t kind = word_->state.exchange(DoorbellWord::awake, std::memory_order_seq_cst);
  if (kind == DoorbellWord::awake) return;
  if (kind == DoorbellWord::on_descriptor && descriptor_ >= 0) {
    const std::uint64_t one = 1;
    // Fails only when the counter is full: then it is readable already.
    [[maybe_unused]] const ssize_t written = ::write(descriptor_, &one, sizeof one);
  } else if (kind == DoorbellWord::on_descriptor) {
    Sleepers::of_process().wake();
  } else {
    // Not FUTEX_PRIVATE: the word is mapped at another address in the sleeper's process.
    ::syscall(SYS_futex, &word_->state, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }
  errno = saved;
}

Descriptor make_doorbell_descriptor() {
  Descriptor descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!descriptor) throw_errno("cannot make an eventfd for a doorbell");
  return descriptor;
}

#ifdef KHORO_TEST_SWITCHES
void lose_wakeups(std::uint64_t period) noexcept {
  lose_period.store(period, std::memory_order_relaxed);
}
#endif

}  // namespace khoro
