// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <khoro/khoro.h>

#include "options.h"

namespace khoro::benchmark {

/// A rank's GPU, and a stream of it. Without one memory is the host's.
struct Gpu {
  khoroMemory_t memory = khoroMemoryHost;
  int device = -1;
  khoroStream_t stream = nullptr;
  explicit operator bool() const noexcept { return stream != nullptr; }
};

/// Throws Failure where this process has none of the devices that were asked for.
void check_devices(const Options& options);

/// What the calls that are measured are made on: the communicator that the ranks of the program
/// have joined, by which they tell each other what they found, or one on GPUs that is made from it.
class Subject {
 public:
  /// Collective over `joined`, which is borrowed. Throws Failure.
  Subject(khoroComm_t joined, const Options& options);
  ~Subject();
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;

  khoroComm_t comm() const noexcept { return on_gpu_ ? on_gpu_ : joined_; }
  const Gpu& gpu() const noexcept { return gpu_; }
  /// For the calls; NULL where they are to block.
  khoroStream_t stream() const noexcept { return blocks_ ? nullptr : gpu_.stream; }
  /// Waits for all calls. Throws Failure if one of them failed.
  void finish();
  /// Nothing uses the buffers of calls any more when it returns.
  void abort() noexcept;

 private:
  khoroComm_t joined_;
  khoroComm_t on_gpu_ = nullptr;  // NULL: on hosts
  Gpu gpu_;
  bool blocks_;
};

}  // namespace khoro::benchmark
