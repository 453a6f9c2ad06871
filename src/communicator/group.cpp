// SPDX-License-Identifier: Apache-2.0
#include "communicator/group.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>

#include "base/error.h"

namespace khoro {

void Batch::add(const Call& call) {
  const Signature& signature = call.signature;
  if (!signature.point_to_point() || signature.peer != communicator_.rank())
    return queue(call).calls.push_back(call);
  auto& messages = signature.kind == CallKind::send ? to_self_ : from_self_;
  const auto later = [](const Call& a, const Call& b) { return a.tag < b.tag; };
  messages.insert(std::upper_bound(messages.begin(), messages.end(), call, later), call);
}

namespace {

/// The one waits for the end of the other.
bool in_order(const Call& call, const Call& other) noexcept {
  const Signature &a = call.signature, &b = other.signature;
  if (!a.point_to_point() || !b.point_to_point()) return a.point_to_point() == b.point_to_point();
  if (a.kind != b.kind || a.peer != b.peer) return false;
  // Receives with different tags take what comes first; sends share a channel.
  return a.kind == CallKind::send ? (call.tag != 0) == (other.tag != 0) : call.tag == other.tag;
}

}  // namespace

Batch::Queue& Batch::queue(const Call& call) {
  const auto same = [&](const Queue& queue) { return in_order(call, queue.calls.front()); };
  const auto found = std::find_if(queues_.begin(), queues_.end(), same);
  if (found != queues_.end()) return *found;
  operations_.reserve(queues_.size() + 1);  // examine() must not fail
  return queues_.emplace_back();
}

void Batch::check_messages_to_itself() const {
  if (to_self_.size() != from_self_.size())
    throw Error(Code::invalid_usage,
                fmt::format("rank {} sends itself {} messages in this group and receives {} from "
                            "itself; put both ends of each into one group",
                            communicator_.rank(), to_self_.size(), from_self_.size()));
  for (std::size_t i = 0; i < to_self_.size(); ++i) {
    const Call &sent = to_self_[i], &received = from_self_[i];
    if (sent.tag != received.tag) {
      const Call& alone = sent.tag < received.tag ? sent : received;
      throw Error(
          Code::invalid_usage,
          fmt::format("{} by that rank itself has no other end in this group; put both ends "
                      "of each message, with the same tag, into one group",
                      describe(alone.signature, alone.tag)));
    }
    if (sent.signature.count != received.signature.count ||
        sent.signature.dtype != received.signature.dtype)
      throw Error(
          Code::invalid_argument,
          fmt::format("{} meets {} on the same rank; both must name the same count and type",
                      describe(sent.signature, sent.tag),
                      describe(received.signature, received.tag)));
  }
}

void Batch::copy_messages_to_itself() noexcept {
  for (std::size_t i = 0; i < to_self_.size(); ++i) {
    const Signature& sent = to_self_[i].signature;
    if (sent.count > 0)
      std::memmove(from_self_[i].buffers.output, to_self_[i].buffers.input,
                   sent.count * find(sent.dtype)->bytes);
  }
}

void Batch::prepare() {
  for (const Queue& queue : queues_)
    on_gpu_.others.insert(on_gpu_.others.end(), queue.calls.begin(), queue.calls.end());
  for (std::size_t i = 0; i < to_self_.size(); ++i)
    on_gpu_.to_itself.emplace_back(to_self_[i], from_self_[i]);
  communicator_.prepare(on_gpu_);
}

Progress Batch::advance(Queue& queue) noexcept {
  bool moved = false;
  while (!queue.done()) {
    if (!queue.under_way) {
      queue.operation = Operation();
      try {
        communicator_.begin(queue.operation, queue.calls[queue.next]);
      } catch (const std::exception&) {
        return Progress::failed;  // begin() has poisoned the communicator, which knows the words
      }
      queue.under_way = true;
      moved = true;
    }
    const Progress progress = communicator_.advance(queue.operation);
    if (progress == Progress::failed) return progress;
    if (progress != Progress::done)
      return moved || progress == Progress::moved ? Progress::moved : Progress::waiting;
    communicator_.finish(queue.operation);
    queue.under_way = false;
    ++queue.next;
    moved = true;
  }
  return Progress::done;
}

Progress Batch::advance() noexcept {
  bool moved = false;
  bool done = true;
  for (Queue& queue : queues_) {
    if (queue.done()) continue;
    const Progress progress = advance(queue);
    if (progress == Progress::failed) return progress;
    done &= progress == Progress::done;
    moved |= progress != Progress::waiting;
  }
  if (done) return Progress::done;
  return moved ? Progress::moved : Progress::waiting;
}

bool Batch::examine(Time now, Time until) noexcept {
  operations_.clear();
  for (Queue& queue : queues_)
    if (queue.under_way) operations_.push_back(&queue.operation);
  if (!communicator_.examine(operations_, now)) return false;
  for (Operation* operation : operations_)
    operation->deadline = std::min(operation->deadline, until);
  return true;
}

Time Batch::wake_by(Time now) const noexcept {
  Time first = never;
  for (const Queue& queue : queues_)
    if (queue.under_way) first = std::min(first, communicator_.wake_by(queue.operation, now));
  return first;
}

namespace {

/// What a thread drives at the end of a group: the batches that are not yet done.
class Together {
 public:
  explicit Together(std::span<Batch> batches) {
    for (Batch& batch : batches) {
      open_.push_back(&batch);
      doorbells_.push_back(batch.communicator().doorbell());
    }
  }

  Progress advance() noexcept {
    bool moved = false;
    close_where([&](Batch& batch) {
      const Progress progress = batch.advance();
      moved |= progress != Progress::waiting;
      return progress == Progress::done || progress == Progress::failed;
    });
    if (open_.empty()) return Progress::done;
    return moved ? Progress::moved : Progress::waiting;
  }
  bool examine(Time now) noexcept {
    close_where([now](Batch& batch) { return !batch.examine(now); });
    return !open_.empty();
  }
  bool stopped() noexcept {
    close_where([](Batch& batch) { return batch.communicator().stopped(); });
    return open_.empty();
  }
  Time wake_by(Time now) const noexcept {
    Time first = never;
    for (const Batch* batch : open_) first = std::min(first, batch->wake_by(now));
    return first;
  }
  std::span<const Doorbell> doorbells() const noexcept { return doorbells_; }

  /// The first that has failed; null if none has.
  const Batch* first_failed() const noexcept { return first_failed_; }

 private:
  template <class Ends>
  void close_where(Ends ends) noexcept {
    std::erase_if(open_, [&](Batch* batch) {
      if (!ends(*batch)) return false;
      if (!first_failed_ && batch->communicator().stopped()) first_failed_ = batch;
      return true;
    });
  }

  std::vector<Batch*> open_;
  // Of all communicators to the end: an armed doorbell must be disarmed by who armed it.
  std::vector<Doorbell> doorbells_;
  const Batch* first_failed_ = nullptr;
};

}  // namespace

void run_together(std::span<Batch> batches) {
  if (batches.empty()) return;
  for (const Batch& batch : batches) batch.check_messages_to_itself();
  for (Batch& batch : batches) batch.copy_messages_to_itself();
  Communicator& any = batches.front().communicator();
  Together together(batches);
  // A rank that waits for another one of this thread must not spin first.
  drive(together, any.system(), any.patience());
  if (!together.first_failed()) return;
  // All of them first: they may be ranks of one communicator, each waiting for the others.
  for (Batch& batch : batches) batch.communicator().leave();
  for (Batch& batch : batches)
    if (batch.communicator().stopped()) batch.communicator().settle();
  together.first_failed()->communicator().throw_cause();
}

}  // namespace khoro
