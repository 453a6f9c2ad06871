// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace khoro {

/// A thread of a block of a kernel that runs on a virtual GPU: a team, see executor/team.h. Given
/// to the kernel's function, and used by that thread alone.
class VirtualBlock {
 public:
  virtual ~VirtualBlock() = default;
  /// The number of this thread in its block, and of threads.
  virtual unsigned rank() const noexcept = 0;
  virtual unsigned size() const noexcept = 0;
  /// All threads of the block meet; each sees what all wrote before. A seeded device delays some
  /// here.
  virtual void sync() const noexcept = 0;
  /// The number of the block in its launch.
  virtual unsigned block() const noexcept = 0;
  /// Launch::shared_bytes of memory of the block, 16-byte aligned, of no certain contents.
  virtual std::byte* shared() const noexcept = 0;
  /// Whoever waits for other blocks calls this each time that it has looked in vain.
  virtual void pause() const noexcept = 0;
};

}  // namespace khoro
