// SPDX-License-Identifier: Apache-2.0
#include "communicator/stream_worker.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/system.h"
#include "base/thread.h"
#include "communicator/attention.h"

namespace khoro {
namespace {

/// Streams in call records, beside threads of the system, whose numbers are small.
constexpr std::uint64_t first_stream = std::uint64_t{1} << 32;

struct Current {
  std::mutex mutex;
  std::weak_ptr<StreamWorker> worker;
};
Current& current() {
  static auto* const current = new Current;
  return *current;
}

/// When a thread that begins to wait for the communicator now gives up.
Time deadline_of(const Communicator& communicator) noexcept {
  return later(machine().now(), communicator.deadline());
}

bool all_ended(const Tasks& tasks) noexcept {
  return std::all_of(tasks.begin(), tasks.end(),
                     [](const TaskPointer& task) { return task->ended(); });
}

}  // namespace

std::shared_ptr<StreamWorker> StreamWorker::of_process() {
  const std::lock_guard lock(current().mutex);
  std::shared_ptr<StreamWorker> worker = current().worker.lock();
  if (!worker) {
    worker = std::make_shared<StreamWorker>();
    current().worker = worker;
  }
  return worker;
}

std::shared_ptr<StreamWorker> StreamWorker::running() noexcept {
  const std::lock_guard lock(current().mutex);
  return current().worker.lock();
}

StreamWorker::StreamWorker() : descriptor_(make_doorbell_descriptor()) {
  desk_.doorbell = Doorbell(word_, descriptor_.number());
  thread_ = start_thread("streams", [this] {
    StreamRounds rounds(desk_);
    drive(rounds, machine(), rounds.patience());
  });
}

StreamWorker::~StreamWorker() {
  {
    const std::lock_guard lock(desk_.mutex);
    desk_.closing = true;
  }
  desk_.ring();
  thread_.join();
}

std::shared_ptr<Stream> StreamWorker::make_stream() {
  const std::lock_guard lock(desk_.mutex);
  return std::make_shared<Stream>(first_stream + streams_++);
}

Tasks StreamWorker::queue(std::vector<StreamQueue::Calls> group) {
  for (StreamQueue::Calls& calls : group)
    if (calls.awaited) calls.until = deadline_of(calls.batch.communicator());
  std::unique_lock lock(desk_.mutex);
  Tasks tasks = desk_.queue.add(std::move(group));
  lock.unlock();
  desk_.ring();
  return tasks;
}

/// Waits until the calls of the communicator have ended, and aborts it if the thread is called
/// away.
template <class Ended>
void StreamWorker::wait(std::unique_lock<std::mutex>& lock, Communicator& communicator,
                        Ended ended) {
  if (!attention.is_set()) return desk_.told.wait(lock, ended);
  const Time since = machine().now();
  while (!desk_.told.wait_for(lock, Attention::interval, ended)) {
    lock.unlock();
    if (attention.calls_away(since, machine().now())) communicator.abort();
    lock.lock();
  }
}

Completion StreamWorker::await(const TaskPointer& task, Communicator& communicator) {
  std::unique_lock lock(desk_.mutex);
  wait(lock, communicator, [&] { return task->settled(); });
  return task->completion;
}

bool StreamWorker::owns(const Communicator& communicator) {
  const std::lock_guard lock(desk_.mutex);
  return desk_.queue.lines().count(&communicator) != 0;
}

void StreamWorker::give_back(Communicator& communicator) {
  std::unique_lock lock(desk_.mutex);
  auto& lines = desk_.queue.lines();
  const auto line = lines.find(&communicator);
  if (line == lines.end()) return;
  line->second.awaited = true;
  line->second.until = deadline_of(communicator);
  lock.unlock();
  desk_.ring();
  lock.lock();
  wait(lock, communicator, [&] { return lines.count(&communicator) == 0; });
}

Completion StreamWorker::synchronize(Stream& stream) {
  std::unique_lock lock(desk_.mutex);
  const Tasks tail = stream.tail;
  for (const TaskPointer& task : tail) task->awaited = true;
  desk_.told.wait(lock, [&] { return all_ended(tail); });
  return stream.first_error;
}

Completion StreamWorker::query(Stream& stream) {
  const std::lock_guard lock(desk_.mutex);
  return all_ended(stream.tail) ? stream.first_error : Completion{Code::in_progress, {}};
}

void StreamWorker::record(const std::shared_ptr<Event>& event,
                          const std::shared_ptr<Stream>& stream) {
  const std::lock_guard lock(desk_.mutex);
  desk_.queue.record(event, stream);
}

void StreamWorker::wait(const std::shared_ptr<Stream>& stream, const Event& event) {
  const std::lock_guard lock(desk_.mutex);
  desk_.queue.wait(stream, event);
}

Completion StreamWorker::await(const Event& event, Time until) {
  std::unique_lock lock(desk_.mutex);
  const TaskPointer record = event.record;
  if (!record) return {};
  const auto ended = [&] { return record->ended(); };
  record->awaited = true;
  if (until == never)
    desk_.told.wait(lock, ended);
  else
    desk_.told.wait_until(lock, std::chrono::steady_clock::time_point(until), ended);
  return record->ended() ? record->completion : Completion{Code::in_progress, {}};
}

int StreamWorker::descriptor(Event& event) {
  const std::lock_guard lock(desk_.mutex);
  if (!event.readable) {
    const bool complete = !event.record || event.record->ended();
    event.readable = Descriptor(::eventfd(complete ? 1 : 0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!event.readable) throw_errno("cannot make the descriptor of an event");
  }
  return event.readable.number();
}

void StreamWorker::close_descriptor(Event& event) noexcept {
  const std::lock_guard lock(desk_.mutex);
  const Descriptor closed = std::move(event.readable);
}

void StreamWorker::call_back(const Event& event, std::function<void(const Completion&)> function) {
  {
    const std::lock_guard lock(desk_.mutex);
    desk_.queue.when_complete(event, std::move(function));
  }
  desk_.ring();
}

}  // namespace khoro
