// SPDX-License-Identifier: Apache-2.0
#include "api/making.h"

#include <new>
#include <utility>

#include "base/thread.h"

namespace khoro {

Making::~Making() {
  interrupt_.raise();
  if (thread_.joinable()) thread_.join();
}

void Making::start(Make make, std::function<void(std::unique_ptr<Communicator>)> publish) {
  thread_ = start_thread(
      "init", [this, make = std::move(make), publish = std::move(publish)] { run(make, publish); });
}

void Making::run(const Make& make,
                 const std::function<void(std::unique_ptr<Communicator>)>& publish) {
  try {
    std::unique_ptr<Communicator> communicator = make(&interrupt_);
    const std::lock_guard lock(mutex_);
    made_ = communicator.get();
    if (made_ && interrupt_.raised()) made_->abort();
    publish(std::move(communicator));
    code_.store(Code::success, std::memory_order_release);
  } catch (const Error& error) {
    fail(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    fail(Code::out_of_memory, "no memory left to make the communicator");
  } catch (const std::exception& error) {
    fail(Code::internal_error, error.what());
  }
}

void Making::fail(Code code, const char* words) noexcept {
  try {
    words_ = words;
  } catch (const std::bad_alloc&) {
    words_ = "no memory";  // fits in the string itself
  }
  code_.store(code, std::memory_order_release);
}

void Making::abort() noexcept {
  const std::lock_guard lock(mutex_);
  interrupt_.raise();
  if (made_) made_->abort();
}

}  // namespace khoro
