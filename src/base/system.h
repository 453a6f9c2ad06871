// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "base/doorbell.h"
#include "base/time.h"

namespace khoro {

/// What the protocol asks of the world: what time it is, and to sleep until a doorbell rings. The
/// real one is the machine; a virtual one steps seeded time, so that the whole protocol runs in one
/// thread and replays from its seed. Thread-safe.
class System {
 public:
  virtual ~System() = default;

  virtual Time now() const noexcept = 0;

  /// Blocks until one of the doorbells rang, what can wake besides is readable, or `until` has
  /// come; may return early. The caller has armed them all, for kind_of_sleep(), has looked for
  /// work since, and disarms them afterwards.
  virtual void park(std::span<const Doorbell> doorbells, Time until) noexcept = 0;

  /// Gives the processor to another thread that wants it.
  virtual void yield() noexcept = 0;
};

/// The machine's monotonic clock, futexes and poll.
System& machine();

/// How long that clock takes to show `when`, for poll(): rounded up, 0 to 3,600,000.
int milliseconds_until(Time when) noexcept;

}  // namespace khoro
