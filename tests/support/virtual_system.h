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
  /// Whether sleepers also wake for no reason now and then, which is legal.
  enum class Wakes { for_a_reason, also_for_none };

  explicit VirtualSystem(std::uint64_t seed, Wakes wakes = Wakes::for_a_reason)
      : state_(mix(seed)), wakes_(wakes) {}

  /// Drawn from the seed: below `bound`.
  std::uint64_t draw(std::uint64_t bound) noexcept {
    state_ = mix(state_);
    return state_ % bound;
  }

  /// Something that a run() will do as a rank. `ready`, if it is given, says whether something that
  /// the task looked for before it parked is there: one that sleeps on although it is, and nobody
  /// has rung, counts as a lost wake-up.
  std::size_t spawn(std::function<void()> body, std::function<bool()> ready = {}) {
    tasks_.push_back(std::make_unique<Task>(spawned_, std::move(body), std::move(ready)));
    return spawned_++;
  }
  /// Lets a task take no turn any more, and no run() wait for it, until it is thawed. The one whose
  /// turn it is goes on to where it next parks, yields or hesitates.
  void freeze(std::size_t task) noexcept { set_frozen(task, true); }
  void thaw(std::size_t task) noexcept { set_frozen(task, false); }

  /// Wake-ups that somebody owed to a sleeper and did not give.
  int lost_wakeups() const noexcept { return lost_wakeups_; }

  /// Something that happens at a time, or as soon after as time passes: a delayed control message,
  /// say. It runs between tasks and may not park.
  void at(Time when, std::function<void()> event) { events_.emplace(when, std::move(event)); }

  enum class End { all_ended, all_parked, time_over };

  /// Plays until every task has ended or is frozen, or all are parked with no time and no event to
  /// come, or `until` has come. Throws what leaves a task.
  End run(Time until = std::chrono::hours(24)) {
    while (true) {
      std::erase_if(tasks_, [](const auto& task) { return task->fiber.ended(); });
      const auto frozen = [](const auto& task) { return task->frozen; };
      if (std::all_of(tasks_.begin(), tasks_.end(), frozen)) return End::all_ended;
      if (now_ >= until) return End::time_over;
      std::vector<Task*> ready;
      for (const auto& task : tasks_) {
        if (!task->frozen && is_ready(*task)) ready.push_back(task.get());
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
    current_->noted = false;
    current_->fiber.give_way();
  }

  void yield() noexcept override {
    if (current_ == nullptr) return pass_to(now_ + longest_turn);
    current_->fiber.give_way();
  }

  /// Parks, whatever wakes it, until so much time has passed.
  void sleep(Duration by) noexcept {
    for (const Time until = now_ + by; now_ < until;) park({}, until);
  }

  bool in_task() const noexcept { return current_ != nullptr; }
  /// The one of whose tasks this thread is in; null if it is in none.
  static VirtualSystem* of_thread() noexcept { return of_thread_; }
  /// In a task: perhaps another one comes first, as it could on a machine at any time.
  void hesitate() noexcept {
    if (current_ != nullptr && draw(8) == 0) current_->fiber.give_way();
  }

 private:
  static constexpr Duration longest_turn{1000};

  struct Task {
    Task(std::size_t at, std::function<void()> body, std::function<bool()> looks)
        : number(at), fiber(std::move(body)), ready(std::move(looks)) {}
    std::size_t number;
    Fiber fiber;
    std::function<bool()> ready;
    bool frozen = false;
    bool parked = false;
    bool noted = false;  // as one whose wake-up was lost
    std::span<const Doorbell> doorbells;
    Time until{0};
  };

  void take_turn(Task& task) {
    current_ = &task;
    of_thread_ = this;
    try {
      task.fiber.resume();
    } catch (...) {
      current_ = nullptr;
      of_thread_ = nullptr;
      throw;
    }
    current_ = nullptr;
    of_thread_ = nullptr;
  }

  bool is_ready(Task& task) {
    const auto rung = [](const Doorbell& doorbell) { return !doorbell.armed(); };
    if (task.parked && task.until > now_ &&
        std::none_of(task.doorbells.begin(), task.doorbells.end(), rung)) {
      note_if_lost(task);
      if (wakes_ == Wakes::for_a_reason || draw(64) != 0) return false;
    }
    task.parked = false;
    return true;
  }

  void note_if_lost(Task& task) {
    if (task.noted || task.doorbells.empty() || !task.ready || !task.ready()) return;
    task.noted = true;
    ++lost_wakeups_;
  }

  void set_frozen(std::size_t number, bool frozen) noexcept {
    for (const auto& task : tasks_)
      if (task->number == number) task->frozen = frozen;
  }

  Time next_time() const noexcept {
    Time next = events_.empty() ? never : events_.begin()->first;
    for (const auto& task : tasks_)
      if (!task->frozen) next = std::min(next, task->until);
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
  Wakes wakes_;
  int lost_wakeups_ = 0;
  std::size_t spawned_ = 0;
  Time now_{0};
  std::vector<std::unique_ptr<Task>> tasks_;
  Task* current_ = nullptr;
  static inline thread_local VirtualSystem* of_thread_ = nullptr;
  std::multimap<Time, std::function<void()>> events_;
};

}  // namespace khoro::test
