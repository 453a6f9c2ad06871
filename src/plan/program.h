// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <coroutine>
#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "plan/collective.h"
#include "plan/step.h"
#include "plan/weights.h"

namespace khoro {

/// The steps of one lane, made one at a time: a coroutine that yields steps. Nobody holds more of a
/// plan than the position of each lane. Move-only; thread-compatible.
class Lane {
 public:
  struct promise_type {
    Step* step = nullptr;
    std::exception_ptr error;
    Lane get_return_object() { return Lane(Handle::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    std::suspend_always yield_value(Step&& yielded) noexcept {
      step = &yielded;  // lives in the suspended coroutine until it is resumed
      return {};
    }
    void return_void() noexcept { step = nullptr; }
    void unhandled_exception() { error = std::current_exception(); }
  };
  using Handle = std::coroutine_handle<promise_type>;

  Lane(Lane&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Lane& operator=(Lane&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Lane() {
    if (handle_) handle_.destroy();
  }

  /// The next step, or null at the end. It is valid until the next call.
  Step* next() {
    handle_.resume();
    if (handle_.promise().error) std::rethrow_exception(handle_.promise().error);
    return handle_.done() ? nullptr : handle_.promise().step;
  }

 private:
  explicit Lane(Handle handle) : handle_(handle) {}
  Handle handle_;
};

/// A counter inside one rank that orders two of its lanes.
struct Token {
  std::string name;
  int count = 0;  // at the start, restored at the end
  bool operator==(const Token&) const = default;
};

/// What one rank does.
struct Program {
  std::vector<Token> tokens;
  std::vector<Lane> lanes;
};

/// A collective as data, for all ranks; each rank's program is made on demand.
struct Plan {
  std::string algorithm;  // "ring"
  Collective collective;
  int chunks = 1;  // of the whole vector
  Weights weights;
  /// The most chunks that one message of any rank carries. Tiles are cut by it, so it is a property
  /// of the plan, the same on all ranks.
  int widest_message = 1;
  /// Whether a rank whose call is in place may send references to its input. It may not where every
  /// rank would wait to overwrite what the others still read; then such messages are copied.
  bool lends_in_place = true;
  std::function<Program(int rank)> program;
  /// The line of the text that the plan was read from, of a step; absent if it was generated.
  std::function<int(int rank, int lane, int step)> line;

  /// "allreduce.ring"
  std::string name() const { return std::string(khoro::name(collective.kind)) + "." + algorithm; }
};

}  // namespace khoro
