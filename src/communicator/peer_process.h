// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>

#include "base/descriptor.h"
#include "communicator/control.h"
#include "rendezvous/membership.h"

namespace khoro {

/// Another process in which ranks live: what it takes to ring them and to see it end. All
/// communicators of this process share it, and so its two descriptors. Thread-safe.
class PeerProcess {
 public:
  /// The one in which `member` lives, of which it takes the descriptors if this process did not
  /// know it yet. Throws `Error`.
  static std::shared_ptr<PeerProcess> of(Introduction& member);

  PeerProcess(Descriptor pidfd, Descriptor bell);

  /// Wakes sleepers there: see Sleepers. -1 if the process has shown none.
  int bell() const noexcept { return bell_.number(); }
  /// Calls once when the process has ended, on the control thread, or here and now if it has
  /// already; until what is returned is destroyed, which waits while it is called. It must not be
  /// destroyed by the callback.
  [[nodiscard]] static std::shared_ptr<void> when_ended(std::shared_ptr<PeerProcess> process,
                                                        std::function<void()> callback);

 private:
  void end();

  Descriptor pidfd_;
  Descriptor bell_;
  std::mutex mutex_;
  bool ended_ = false;
  std::list<std::function<void()>> callbacks_;
  std::shared_ptr<Control> control_;
  Control::Watch watch_;  // dropped before its control
};

}  // namespace khoro
