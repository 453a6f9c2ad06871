// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "base/error.h"
#include "communicator/group.h"

namespace khoro {

/// What came of work on streams; words only where it failed.
struct Completion {
  Code code = Code::success;
  std::string words;

  bool failed() const noexcept { return code != Code::success; }
};

struct Task;
/// Shared by the worker, by what it precedes, and by the events and threads that wait for it.
using TaskPointer = std::shared_ptr<Task>;
using Tasks = std::vector<TaskPointer>;

// All of the following is guarded by the worker's lock, except where it says otherwise.

/// An order of work, which the worker of the process does.
struct Stream {
  /// Counts the streams of the process.
  explicit Stream(std::uint64_t number) noexcept : number(number) {}

  const std::uint64_t number;
  /// What was queued last: one task, or those of one group.
  Tasks tail;
  Completion first_error;
  /// The first error since an event was recorded; that of the event while nothing came after it.
  Completion since_event;
  bool event_was_last = false;

  void note(const Completion& completion) {
    if (!first_error.failed()) first_error = completion;
    if (event_was_last || !since_event.failed()) since_event = completion;
    event_was_last = false;
  }
};

/// A place in a stream that can be asked and waited for.
struct Event {
  /// The last record of it. Null: there was none, and it counts as complete.
  TaskPointer record;
  /// An eventfd, readable while the event is complete. Made when first asked for.
  Descriptor readable;
};

/// What is called when a record has ended.
struct Callback {
  std::function<void(const Completion&)> function;
  TaskPointer record;  // set when it has ended
};

/// One place in the order of streams: calls of one communicator, or a mark between them. Its turn
/// comes when all that it follows has ended: what is before it on its streams, what was called
/// before it on its communicator, the event that it waits for. All of that was queued earlier, so
/// no circle can come about.
struct Task {
  enum class Kind : std::uint8_t { calls, record, wait };
  enum class State : std::uint8_t {
    waits,
    runs,
    failed,  // before its turn, which still has to come: its communicator has stopped
    ended,
  };

  explicit Task(Kind kind) noexcept : kind(kind) {}
  bool ended() const noexcept { return state == State::ended; }
  /// Its communicator and the buffers of its calls are touched no more.
  bool settled() const noexcept { return state == State::ended || state == State::failed; }

  const Kind kind;
  State state = State::waits;
  bool awaited = false;  // by a thread
  /// What call records name as the thread: a stream, or the thread that is blocked in the calls.
  std::uint64_t thread = 0;
  /// Kept in being by their handles and by what is queued on them.
  std::vector<std::shared_ptr<Stream>> streams;
  /// Of a record; kept in being by its handle and by this.
  std::shared_ptr<Event> event;
  /// Of calls that have not failed. Of the worker alone, without the lock, while the task runs.
  std::optional<Batch> batch;
  int follows = 0;  // how many that have not ended
  Tasks followers;
  std::list<Callback> callbacks;
  /// Once it is settled, then constant.
  Completion completion;
};

}  // namespace khoro
