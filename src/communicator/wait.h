// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "base/system.h"
#include "executor/execution.h"

namespace khoro {

/// Lets the other hyperthread, or the memory system, have a moment.
inline void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// How a waiting thread spends its time: spins, yields, then sleeps until a doorbell rings.
struct Patience {
  /// Looks before the first yield; 0 where ranks outnumber cores, for a spinning rank would only
  /// keep the one it waits for from running.
  int spins = 2'000;
  Duration yields{50'000};
  /// Looks that found something between two looks at the clock.
  int busy_looks = 4'096;
  /// Looks in quick succession at first: a pause may take as long as a cache line is under way.
  int eager_looks = 64;
};

/// Drives `work` until it is done or has failed; the calling thread blocks meanwhile. `Work` is
/// what a Communicator or a group has under way:
///   Progress advance()                 does what can be done now
///   bool examine(Time now)             looks for reasons to stop waiting; false: it has failed
///   bool stopped()                     the same, of what is known already, at the cost of a load
///   Time wake_by(Time now)             when examine() must be called again at the latest
///   std::span<const Doorbell> doorbells()
template <class Work>
void drive(Work& work, System& system, const Patience& patience) {
  int idle = 0;
  int busy = 0;
  bool armed = false;
  Time yield_until{};
  const auto arm = [&](bool on) {
    const auto doorbells = work.doorbells();
    const std::uint32_t kind = kind_of_sleep(doorbells);
    for (const Doorbell& doorbell : doorbells) on ? doorbell.arm(kind) : doorbell.disarm();
    armed = on;
  };
  for (;;) {
    const Progress progress = work.advance();
    if (progress != Progress::waiting && armed) arm(false);
    if (progress == Progress::done || progress == Progress::failed) return;
    if (progress == Progress::moved) {
      idle = 0;
      if (work.stopped()) return;
      if (++busy % patience.busy_looks == 0 && !work.examine(system.now())) return;
      continue;
    }
    if (idle < patience.spins) {
      if (++idle > patience.eager_looks) relax();
      continue;
    }
    const Time now = system.now();
    if (!work.examine(now)) {
      if (armed) arm(false);
      return;
    }
    if (idle++ == patience.spins) yield_until = now + patience.yields;
    if (now < yield_until) {
      system.yield();
    } else if (!armed) {
      arm(true);  // and look once more
    } else {
      system.park(work.doorbells(), work.wake_by(now));
      arm(false);
    }
  }
}

}  // namespace khoro
