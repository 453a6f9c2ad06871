// SPDX-License-Identifier: Apache-2.0
#include "base/system.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/sleepers.h"

namespace khoro {
namespace {

class Machine final : public System {
 public:
  Time now() const noexcept override {
    timespec time{};
    ::clock_gettime(CLOCK_MONOTONIC, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  }

  void park(std::span<const Doorbell> doorbells, Time until) noexcept override {
    const int saved = errno;
    if (doorbells.size() == 1 && sleeps_on_futex(doorbells[0])) {
      wait_on_futex(doorbells[0], until);
    } else {
      Sleepers::of_process().sleep(doorbells, until);
    }
    errno = saved;
  }

  void yield() noexcept override { ::sched_yield(); }

 private:
  static bool sleeps_on_futex(const Doorbell& doorbell) noexcept {
    return doorbell.word()->state.load(std::memory_order_acquire) == DoorbellWord::on_futex;
  }

  static void wait_on_futex(const Doorbell& doorbell, Time until) noexcept {
    const timespec time = to_timespec(until);
    // The kernel compares and queues in one step, so a ring in between is not lost. The time is
    // absolute on the monotonic clock, which a bitset wait takes.
    ::syscall(SYS_futex, &doorbell.word()->state, FUTEX_WAIT_BITSET, DoorbellWord::on_futex,
              until == never ? nullptr : &time, nullptr, FUTEX_BITSET_MATCH_ANY);
  }
};

}  // namespace

System& machine() {
  static Machine machine;
  return machine;
}

int milliseconds_until(Time when) noexcept {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(when - machine().now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 3'600'000));
}

}  // namespace khoro
