// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <list>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/time.h"
#include "communicator/stream.h"

namespace khoro {

/// The calls of one communicator that are queued and have not ended, in call order; all but the
/// first wait. While there are any, the worker owns the communicator.
struct Line {
  std::list<TaskPointer> tasks;
  /// A thread waits until the line has ended, or until its last call has.
  bool awaited = false;
  Time until = never;  // when that thread's patience ends
};

/// Who follows whom: the order of all that is queued on streams. Not thread-safe: the worker guards
/// it. What throws, for want of memory, leaves it as it was.
class StreamQueue {
 public:
  /// Calls of one communicator, and the streams that they are on; none if a thread is blocked in
  /// them alone.
  struct Calls {
    Batch batch;
    std::vector<std::shared_ptr<Stream>> streams;
    /// A thread will wait for them, `until` at most.
    bool awaited = false;
    Time until = never;
  };

  /// Queues what a group holds, each communicator at most once; those of one stream run beside each
  /// other. Returns the tasks in that order.
  Tasks add(std::vector<Calls> group);
  /// Queues a record of the event. It may have ended at once.
  void record(const std::shared_ptr<Event>& event, const std::shared_ptr<Stream>& stream);
  /// Has what comes on the stream from now on wait for the event as it is recorded now.
  void wait(const std::shared_ptr<Stream>& stream, const Event& event);
  /// Calls back once, when the event as it is recorded now is complete.
  void when_complete(const Event& event, std::function<void(const Completion&)> function);

  // Of the worker.

  /// Adds the tasks to `running` whose turn has come.
  void take_ready(Tasks& running);
  /// Ends a task whose completion is known; others' turns come by it.
  void end(const TaskPointer& task);
  /// Fails the calls of the communicator that wait, and forgets its line unless one of them runs.
  void fail_waiting(Communicator& communicator, const Completion& cause);

  using Lines = std::unordered_map<const Communicator*, Line>;
  Lines& lines() noexcept { return lines_; }

  /// Callbacks whose record has ended.
  std::list<Callback> take_due() noexcept { return std::exchange(due_, {}); }
  /// Whether something has ended that a thread waits for.
  bool take_news() noexcept { return std::exchange(news_, false); }
  bool empty() const noexcept { return unended_ == 0 && due_.empty(); }

 private:
  static void follow(const TaskPointer& task, const TaskPointer& before) noexcept;
  void append(const TaskPointer& mark, const TaskPointer& also_before);
  void make_room(std::size_t tasks);
  void make_room(const Task& task);
  void turn_has_come(const TaskPointer& task) noexcept;
  void end_one(const TaskPointer& task) noexcept;
  void end_line(Lines::iterator line) noexcept;

  Lines lines_;
  // Have room for all tasks that have not ended.
  Tasks ready_;   // calls whose turn has come
  Tasks ending_;  // tasks whose turn has come and that have nothing to do
  std::list<Callback> due_;
  std::size_t unended_ = 0;
  bool news_ = false;
};

}  // namespace khoro
