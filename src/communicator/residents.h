// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <mutex>
#include <vector>

namespace khoro {

class Communicator;

/// The communicators of this process, so that one rank can reach the ranks that are threads beside
/// it. Thread-safe. The one of the process lives until it ends.
class Residents {
 public:
  static Residents& of_process();

  /// Gives the communicator its ordinal.
  void add(Communicator& communicator);
  /// Blocks while somebody visits: the communicator is visited no more when it returns.
  void remove(Communicator& communicator) noexcept;
  /// Calls `visit` for every other rank of the same communicator that is a thread of this process;
  /// none of them goes away meanwhile. `visit` must not visit.
  void visit_siblings(const Communicator& of,
                      const std::function<void(Communicator&)>& visit) const noexcept;
  /// Calls `visit` for this one and, unless it says false, for those. `visit` must not visit.
  void visit_with_siblings(Communicator& of,
                           const std::function<bool(Communicator&)>& visit) const noexcept;
  /// Calls `visit` for every communicator of this process; none of them goes away meanwhile.
  /// `visit` must not visit.
  void visit_all(const std::function<void(Communicator&)>& visit) const noexcept;

 private:
  template <class Visit>
  void siblings(const Communicator& of, Visit&& visit) const noexcept;  // with the lock

  mutable std::mutex mutex_;
  std::vector<Communicator*> all_;
  int made_ = 0;
};

}  // namespace khoro
