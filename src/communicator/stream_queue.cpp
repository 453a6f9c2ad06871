// SPDX-License-Identifier: Apache-2.0
#include "communicator/stream_queue.h"

#include <unistd.h>

#include <algorithm>

#include "base/thread.h"

namespace khoro {
namespace {

/// Room for `more` at the end, grown so that many small additions cost little.
template <class T>
void reserve(std::vector<T>& vector, std::size_t more) {
  const std::size_t size = vector.size() + more;
  if (vector.capacity() < size) vector.reserve(std::max(size, 2 * vector.capacity()));
}

void set_readable(const Descriptor& descriptor) noexcept {
  const std::uint64_t one = 1;
  if (descriptor) [[maybe_unused]]
    const ssize_t size = ::write(descriptor.number(), &one, sizeof one);
}

void set_unreadable(const Descriptor& descriptor) noexcept {
  std::uint64_t count = 0;
  if (descriptor) [[maybe_unused]]
    const ssize_t size = ::read(descriptor.number(), &count, sizeof count);
}

TaskPointer make_task(StreamQueue::Calls& calls) {
  auto task = std::make_shared<Task>(Task::Kind::calls);
  task->awaited = calls.awaited;
  task->thread = calls.streams.empty() ? current_thread() : calls.streams.front()->number;
  task->streams = std::move(calls.streams);
  task->batch.emplace(std::move(calls.batch));
  return task;
}

/// The new ends of the streams that a group is on.
std::vector<std::pair<Stream*, Tasks>> tails_of(const Tasks& group) {
  std::vector<std::pair<Stream*, Tasks>> tails;
  for (const TaskPointer& task : group)
    for (const auto& stream : task->streams) {
      const auto same = std::find_if(tails.begin(), tails.end(),
                                     [&](const auto& tail) { return tail.first == stream.get(); });
      if (same == tails.end())
        tails.push_back({stream.get(), {task}});
      else
        same->second.push_back(task);
    }
  return tails;
}

}  // namespace

void StreamQueue::follow(const TaskPointer& task, const TaskPointer& before) noexcept {
  if (before->ended()) return;
  // It may be before it for several reasons.
  if (!before->followers.empty() && before->followers.back() == task) return;
  before->followers.push_back(task);
  ++task->follows;
}

void StreamQueue::make_room(std::size_t tasks) {
  for (Tasks* list : {&ready_, &ending_}) reserve(*list, unended_ - list->size() + tasks);
}

/// Room behind all that may come before the task on its streams.
void StreamQueue::make_room(const Task& task) {
  for (const auto& stream : task.streams)
    for (const TaskPointer& before : stream->tail) reserve(before->followers, 1);
}

Tasks StreamQueue::add(std::vector<Calls> group) {
  Tasks tasks;
  std::list<TaskPointer> places;
  std::vector<std::pair<Stream*, Tasks>> tails;
  // All that can fail comes first.
  try {
    make_room(group.size());
    for (Calls& calls : group) {
      Line& line = lines_[&calls.batch.communicator()];
      if (!line.tasks.empty()) reserve(line.tasks.back()->followers, 1);
      tasks.push_back(make_task(calls));
      places.push_back(tasks.back());
      for (const auto& stream : tasks.back()->streams)
        for (const TaskPointer& before : stream->tail) reserve(before->followers, group.size() + 1);
    }
    tails = tails_of(tasks);
  } catch (...) {
    std::erase_if(lines_, [](const auto& line) { return line.second.tasks.empty(); });
    throw;
  }
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const TaskPointer& task = tasks[i];
    for (const auto& stream : task->streams)
      for (const TaskPointer& before : stream->tail) follow(task, before);
    Line& line = lines_.find(&task->batch->communicator())->second;
    if (!line.tasks.empty()) follow(task, line.tasks.back());
    line.tasks.splice(line.tasks.end(), places, places.begin());
    line.until = group[i].until;
    ++unended_;
    if (task->follows == 0) turn_has_come(task);
  }
  for (auto& [stream, tail] : tails) stream->tail = std::move(tail);
  return tasks;
}

/// Puts a mark at the end of its stream, and after one more task, if there is one.
void StreamQueue::append(const TaskPointer& mark, const TaskPointer& also_before) {
  Stream& stream = *mark->streams.front();
  Tasks tail{mark};
  make_room(1);
  make_room(*mark);
  if (also_before) reserve(also_before->followers, 1);
  for (const TaskPointer& before : stream.tail) follow(mark, before);
  if (also_before) follow(mark, also_before);
  stream.tail = std::move(tail);
  ++unended_;
}

void StreamQueue::record(const std::shared_ptr<Event>& event,
                         const std::shared_ptr<Stream>& stream) {
  const auto mark = std::make_shared<Task>(Task::Kind::record);
  mark->streams.push_back(stream);
  mark->event = event;
  append(mark, nullptr);
  event->record = mark;
  set_unreadable(event->readable);
  if (mark->follows == 0) end(mark);
}

void StreamQueue::wait(const std::shared_ptr<Stream>& stream, const Event& event) {
  if (!event.record || event.record->ended()) return;
  const auto mark = std::make_shared<Task>(Task::Kind::wait);
  mark->streams.push_back(stream);
  append(mark, event.record);
}

void StreamQueue::when_complete(const Event& event,
                                std::function<void(const Completion&)> function) {
  std::list<Callback> one;
  one.push_back({std::move(function), nullptr});
  const bool complete = !event.record || event.record->ended();
  if (complete) one.front().record = event.record;
  std::list<Callback>& callbacks = complete ? due_ : event.record->callbacks;
  callbacks.splice(callbacks.end(), one);
}

void StreamQueue::turn_has_come(const TaskPointer& task) noexcept {
  const bool has_work = task->kind == Task::Kind::calls && task->state == Task::State::waits;
  (has_work ? ready_ : ending_).push_back(task);
}

void StreamQueue::take_ready(Tasks& running) {
  while (!ready_.empty()) {
    running.push_back(ready_.back());
    const TaskPointer task = std::move(ready_.back());
    ready_.pop_back();
    if (task->state == Task::State::waits) {
      task->state = Task::State::runs;
    } else {
      running.pop_back();
      end(task);
    }
  }
}

void StreamQueue::end(const TaskPointer& task) {
  end_one(task);
  while (!ending_.empty()) {
    const TaskPointer next = std::move(ending_.back());
    ending_.pop_back();
    end_one(next);
  }
}

void StreamQueue::end_one(const TaskPointer& task) noexcept {
  if (task->state == Task::State::runs) {
    const auto line = lines_.find(&task->batch->communicator());
    line->second.tasks.pop_front();
    if (line->second.tasks.empty()) end_line(line);
  }
  if (task->kind == Task::Kind::record) {
    Stream& stream = *task->streams.front();
    task->completion = stream.since_event;
    stream.event_was_last = true;
    if (task->event->record == task) set_readable(task->event->readable);
  } else if (task->kind == Task::Kind::calls) {
    for (const auto& stream : task->streams) stream->note(task->completion);
  }
  task->state = Task::State::ended;
  task->batch.reset();
  task->streams.clear();
  task->event.reset();
  news_ |= task->awaited;
  --unended_;
  for (Callback& callback : task->callbacks) callback.record = task;
  due_.splice(due_.end(), task->callbacks);
  for (const TaskPointer& follower : std::exchange(task->followers, {}))
    if (--follower->follows == 0) turn_has_come(follower);
}

void StreamQueue::fail_waiting(Communicator& communicator, const Completion& cause) {
  const auto line = lines_.find(&communicator);
  std::list<TaskPointer>& tasks = line->second.tasks;
  for (auto at = tasks.begin(); at != tasks.end();) {
    const auto each = at++;
    if ((*each)->state != Task::State::waits) continue;
    (*each)->completion = cause;
    (*each)->state = Task::State::failed;
    (*each)->batch.reset();
    news_ |= (*each)->awaited;
    tasks.erase(each);
  }
  if (tasks.empty()) end_line(line);
}

void StreamQueue::end_line(Lines::iterator line) noexcept {
  news_ |= line->second.awaited;
  lines_.erase(line);
}

}  // namespace khoro
