// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/error.h"
#include "base/interrupt.h"
#include "communicator/communicator.h"

namespace khoro {

/// Makes a communicator. What it waits for ends when the interrupt is raised; null: never.
using Make = std::function<std::unique_ptr<Communicator>(const Interrupt*)>;

/// A communicator that is being made by a thread of its own, behind a handle that is out already.
/// Thread-safe.
class Making {
 public:
  Making() = default;
  /// Interrupts it and waits for its end, which is near then.
  ~Making();

  /// Starts; `publish` takes the communicator over on that thread. Throws `Error`.
  void start(Make make, std::function<void(std::unique_ptr<Communicator>)> publish);

  /// in_progress, success once it was published, or why it failed.
  Code code() const noexcept { return code_.load(std::memory_order_acquire); }
  bool failed() const noexcept { return code() != Code::in_progress && code() != Code::success; }
  /// Precondition: failed().
  const std::string& words() const noexcept { return words_; }

  /// Ends it, or aborts the communicator if it has just been made.
  void abort() noexcept;

 private:
  void run(const Make& make, const std::function<void(std::unique_ptr<Communicator>)>& publish);
  void fail(Code code, const char* words) noexcept;

  Interrupt interrupt_;
  std::mutex mutex_;  // of publishing against aborting
  Communicator* made_ = nullptr;
  std::string words_;
  std::atomic<Code> code_{Code::in_progress};
  std::thread thread_;
};

}  // namespace khoro
