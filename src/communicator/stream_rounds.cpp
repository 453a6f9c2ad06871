// SPDX-License-Identifier: Apache-2.0
#include "communicator/stream_rounds.h"

#include <algorithm>
#include <utility>

#include "base/system.h"
#include "communicator/process.h"

namespace khoro {
namespace {

constexpr Duration most_to_leave = std::chrono::seconds(1);
// Nobody rings when another rank of this process has left its operation.
constexpr Duration looks_for_leaving = std::chrono::milliseconds(1);
// One that waits is looked after although another one moves.
constexpr int busy_looks = 64;

Completion cause_of(Communicator& communicator) {
  return {communicator.async_error(), communicator.cause_words()};
}

}  // namespace

StreamRounds::StreamRounds(StreamDesk& desk) : desk_(desk), doorbells_{desk.doorbell} {
  patience_.busy_looks = busy_looks;
  patience_.spins = 0;
}

Progress StreamRounds::advance() noexcept {
  bool moved = false;
  if (turn_is_due_) {
    turn_is_due_ = false;
    moved = true;
    if (!turn()) return Progress::done;
  }
  for (Running& running : running_) {
    if (!running.ended) moved |= step(running) != Progress::waiting;
    turn_is_due_ |= running.ended;
  }
  for (const Waiting& waiting : waiting_) turn_is_due_ |= waiting.communicator->stopped();
  turn_is_due_ |= std::exchange(failed_, false);
  turn_is_due_ |= desk_.changed.load(std::memory_order_seq_cst) != 0;
  return moved || turn_is_due_ ? Progress::moved : Progress::waiting;
}

Progress StreamRounds::step(Running& running) noexcept {
  Batch& batch = *running.task->batch;
  Communicator& communicator = batch.communicator();
  if (running.leaves) {
    if (!communicator.settled()) return Progress::waiting;
    end(running, communicator.async_error());
    return Progress::done;
  }
  Progress progress = Progress::failed;
  if (!communicator.stopped()) {
    if (!running.begun) {
      running.begun = true;
      communicator.serve(running.task->thread);
      batch.copy_messages_to_itself();
    }
    progress = batch.advance();
  }
  if (progress == Progress::done) end(running, Code::success);
  if (progress == Progress::failed) fail(running);
  return progress;
}

void StreamRounds::fail(Running& running) noexcept {
  Communicator& communicator = running.task->batch->communicator();
  if (!running.begun) return end(running, communicator.async_error());
  communicator.leave();
  Process::self().fence_all_threads();
  failed_ = true;
  running.leaves = true;
  running.leave_by = machine().now() + most_to_leave;
}

void StreamRounds::end(Running& running, Code code) noexcept {
  running.ended = true;
  if (code != Code::success)
    running.task->completion = cause_of(running.task->batch->communicator());
}

bool StreamRounds::examine(Time now) noexcept {
  for (Running& running : running_) {
    if (running.ended || !running.begun) continue;
    if (!running.leaves && !running.task->batch->examine(now, running.until)) fail(running);
    if (running.leaves && now >= running.leave_by)
      end(running, running.task->batch->communicator().async_error());
  }
  for (const Waiting& waiting : waiting_) {
    // A peer's notice, perhaps.
    if (waiting.communicator->async_error() == Code::success && now >= waiting.until)
      waiting.communicator->overdue(waiting.calls);
  }
  return true;
}

Time StreamRounds::wake_by(Time now) const noexcept {
  Time first = failed_ ? now : never;
  for (const Running& running : running_) {
    if (running.ended) return now;
    first = std::min(first,
                     running.leaves ? now + looks_for_leaving : running.task->batch->wake_by(now));
  }
  for (const Waiting& waiting : waiting_) {
    if (waiting.communicator->stopped()) return now;
    first = std::min(first, waiting.until);
  }
  return first;
}

bool StreamRounds::turn() noexcept {
  std::list<Callback> due;
  bool news = false;
  bool over = false;
  {
    desk_.changed.store(0, std::memory_order_seq_cst);  // what comes now, comes with the next turn
    const std::lock_guard lock(desk_.mutex);
    settle_lines();
    look_at_lines();
    due = desk_.queue.take_due();
    news = desk_.queue.take_news();
    over = desk_.closing && desk_.queue.empty();
  }
  if (news) desk_.told.notify_all();
  for (const Callback& callback : due)
    callback.function(callback.record ? callback.record->completion : Completion());
  return !over;
}

/// Ends what has ended, fails what cannot begin any more, and takes on whose turn has come.
void StreamRounds::settle_lines() {
  StreamQueue& queue = desk_.queue;
  for (const Running& running : running_)
    if (running.ended) queue.end(running.task);
  std::erase_if(running_, [](const Running& running) { return running.ended; });
  for (const Waiting& waiting : waiting_)
    if (waiting.communicator->stopped() && queue.lines().count(waiting.communicator) != 0)
      queue.fail_waiting(*waiting.communicator, cause_of(*waiting.communicator));
  for (const Running& running : running_) {
    Communicator& communicator = running.task->batch->communicator();
    if (communicator.stopped()) queue.fail_waiting(communicator, cause_of(communicator));
  }
  Tasks ready;
  queue.take_ready(ready);
  for (TaskPointer& task : ready) running_.push_back({std::move(task)});
}

/// Finds out whose doorbells matter and how patient to be.
void StreamRounds::look_at_lines() {
  waiting_.clear();
  doorbells_.assign(1, desk_.doorbell);
  patience_.spins = running_.empty() ? 0 : Patience().spins;
  for (auto& [key, line] : desk_.queue.lines()) {
    Task& first = *line.tasks.front();
    Communicator& communicator = first.batch->communicator();
    doorbells_.push_back(communicator.doorbell());
    if (first.state == Task::State::waits)
      waiting_.push_back({&communicator, line.until, line.tasks.size()});
  }
  for (Running& running : running_) {
    const Communicator& communicator = running.task->batch->communicator();
    running.until = desk_.queue.lines().at(&communicator).until;
    patience_.spins = std::min(patience_.spins, communicator.patience().spins);
  }
}

}  // namespace khoro
