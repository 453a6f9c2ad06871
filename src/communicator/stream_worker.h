// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/descriptor.h"
#include "base/doorbell.h"
#include "base/time.h"
#include "communicator/stream_queue.h"
#include "communicator/stream_rounds.h"

namespace khoro {

/// The one thread of a process that works for all of its streams. It lives while there are streams
/// or events, and sleeps while there is nothing to do. Thread-safe; what says so blocks the calling
/// thread, and must not be called by a callback.
class StreamWorker {
 public:
  /// The one of this process, started if there is none. Owned by the handles of streams and events
  /// and by the calls that look at them: the last of these ends it. Throws `Error`.
  static std::shared_ptr<StreamWorker> of_process();
  /// Null if there is none.
  static std::shared_ptr<StreamWorker> running() noexcept;

  StreamWorker();
  /// Waits until everything is done.
  ~StreamWorker();
  StreamWorker(const StreamWorker&) = delete;
  StreamWorker& operator=(const StreamWorker&) = delete;

  std::shared_ptr<Stream> make_stream();

  /// As StreamQueue::add(). The callers of the communicators' other calls have been kept out, and
  /// have checked these; `until` is set here. If it throws, for want of memory, nothing is queued.
  Tasks queue(std::vector<StreamQueue::Calls> group);
  /// Blocks until nothing touches the buffers of the calls any more, and says what came of them.
  /// They are the communicator's, which is aborted if the thread is called away.
  Completion await(const TaskPointer& task, Communicator& communicator);
  /// Calls of the communicator are queued: it is the worker's.
  bool owns(const Communicator& communicator);
  /// Blocks until it is not, at most for the communicator's deadline, which then fails it.
  void give_back(Communicator& communicator);

  /// Blocks until what has been queued on the stream has ended. The first error of the stream.
  Completion synchronize(Stream& stream);
  /// The same now; in_progress if it has not ended.
  Completion query(Stream& stream);

  void record(const std::shared_ptr<Event>& event, const std::shared_ptr<Stream>& stream);
  void wait(const std::shared_ptr<Stream>& stream, const Event& event);
  /// Blocks until the event as it is recorded now is complete, at most until `until`: in_progress
  /// then, else what it carries.
  Completion await(const Event& event, Time until);
  /// Readable while the event is complete; the event's own. Throws `Error`.
  int descriptor(Event& event);
  void close_descriptor(Event& event) noexcept;
  /// Calls once, on the worker, when the event as it is recorded now is complete.
  void call_back(const Event& event, std::function<void(const Completion&)> function);

 private:
  template <class Ended>
  void wait(std::unique_lock<std::mutex>& lock, Communicator& communicator, Ended ended);

  StreamDesk desk_;
  DoorbellWord word_{};
  Descriptor descriptor_;
  std::uint64_t streams_ = 0;
  std::thread thread_;
};

}  // namespace khoro
