// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/system.h"
#include "support/fiber.h"

namespace khoro::test {

/// A world in one thread, whose time passes only as it says and whose every choice comes from a
/// seed, so that what happens in it happens again with the same seed. Each rank is a task, which
/// runs until it parks or yields; who goes on next, and how much time that took, is drawn.
///
/// Code outside any task (a test's own) may use it too: then parking lets the time pass at once.
class VirtualSystem final : public System {
 public:
  explicit VirtualSystem(std::uint64_t seed) : state_(mix(seed)) {}

  /// Drawn from the seed: below `bound`.
  std::uint64_t draw(std::uint64_t bound) noexcept {
    state_ = mix(state_);
    return state_ % bound;
  }

  /// Something that a run() will do as a rank.
  void spawn(std::function<void()> body) {
    tasks_.push_back(std::make_unique<Task>(std::move(body)));
  }

  /// Something that happens at a time, or as soon after as time passes: a delayed control message,
  /// say. It runs between tasks and may not park.
  void at(Time when, std::function<void()> event) { events_.emplace(when, std::move(event)); }

  enum class End { all_ended, all_parked, time_over };

  /// Plays until every task has ended, or all are parked with no time and no event to come, or
  /// `until` has come. Throws what leaves a task.
  End run(Time until = std::chrono::hours(24)) {
    while (true) {
      std::erase_if(tasks_, [](const auto& task) { return task->fiber.ended(); });
      if (tasks_.empty()) return End::all_ended;
      if (now_ >= until) return End::time_over;
      std::vector<Task*> ready;
      for (const auto& task : tasks_) {
        if (is_ready(*task)) ready.push_back(task.get());
      }
      if (ready.empty()) {
        if (next_time() == never) return End::all_parked;
        pass_to(next_time());
        continue;
      }
      take_turn(*ready[draw(ready.size())]);
      pass_to(now_ + Duration(1 + draw(longest_turn.count())));
    }
  }

  Time now() const noexcept override { return now_; }

  void park(std::span<const Doorbell> doorbells, Time until) noexcept override {
    if (current_ == nullptr) return pass_to(std::clamp(until, now_, now_ + longest_turn));
    current_->doorbells = doorbells;
    current_->until = until;
    current_->parked = true;
    current_->fiber.give_way();
  }

  void yield() noexcept override {
    if (current_ == nullptr) return pass_to(now_ + longest_turn);
    current_->fiber.give_way();
  }

 private:
  static constexpr Duration longest_turn{1000};

  struct Task {
    explicit Task(std::function<void()> body) : fiber(std::move(body)) {}
    Fiber fiber;
    bool parked = false;
    std::span<const Doorbell> doorbells;
    Time until{0};
  };

  void take_turn(Task& task) {
    current_ = &task;
    try {
      task.fiber.resume();
    } catch (...) {
      current_ = nullptr;
      throw;
    }
    current_ = nullptr;
  }

  bool is_ready(Task& task) const noexcept {
    const auto rung = [](const Doorbell& doorbell) { return !doorbell.armed(); };
    if (task.parked && task.until > now_ &&
        std::none_of(task.doorbells.begin(), task.doorbells.end(), rung)) {
      return false;
    }
    task.parked = false;
    return true;
  }

  Time next_time() const noexcept {
    Time next = events_.empty() ? never : events_.begin()->first;
    for (const auto& task : tasks_) next = std::min(next, task->until);
    return next;
  }

  void pass_to(Time when) noexcept {
    now_ = std::max(now_, when);
    while (!events_.empty() && events_.begin()->first <= now_) {
      const std::function<void()> event = std::move(events_.begin()->second);
      events_.erase(events_.begin());
      event();
    }
  }

  std::uint64_t state_;
  Time now_{0};
  std::vector<std::unique_ptr<Task>> tasks_;
  Task* current_ = nullptr;
  std::multimap<Time, std::function<void()>> events_;
};

}  // namespace khoro::test
