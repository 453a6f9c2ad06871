// SPDX-License-Identifier: Apache-2.0
// The calls of a group, at its end.
#include <algorithm>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "api/groups.h"
#include "api/handle_table.h"
#include "api/stream_handles.h"
#include "base/error.h"
#include "communicator/group.h"

namespace khoro {
namespace {

/// The calls of one communicator. Calls on several streams make one step of each of these.
struct Part {
  khoroComm_t handle;
  HandleTable::Claim claim;
  Batch batch;
  std::vector<std::shared_ptr<Stream>> streams;
  bool blocks = false;  // a call has no stream
  std::shared_ptr<GpuStream> gpu_stream = nullptr;

  void on_stream(const std::shared_ptr<GpuStream>& stream) {
    if (gpu_stream && gpu_stream != stream)
      throw Error(Code::invalid_usage,
                  "the group has calls of one communicator on several streams of its GPU; use one");
    gpu_stream = stream;
  }
  /// Calls that name no stream block, also where others in the group name one.
  void await_gpu() {
    if (gpu_stream) gpu_stream->stream->synchronize();
    claim->await_gpu();
  }
  bool on_gpu() const noexcept { return claim->gpu() != nullptr; }
};

Part& part_of(khoroComm_t handle, std::vector<Part>& parts) {
  for (Part& part : parts)
    if (part.handle == handle) return part;
  HandleTable::Claim claim = handles().claim_with_streams(handle);
  Communicator& communicator = *claim;
  parts.push_back({handle, std::move(claim), Batch(communicator), {}});
  return parts.back();
}

/// What is left to the worker.
struct Left {
  std::shared_ptr<StreamWorker> worker;
  std::vector<StreamQueue::Calls> group;
};

/// Splits the parts into those that this thread drives, and those that wait for streams.
std::vector<Batch> take_own(std::vector<Part>& parts, Left& left, std::exception_ptr& first_error) {
  std::vector<Batch> own;
  for (Part& part : parts) {
    if (part.on_gpu()) continue;
    if (auto owner = part.claim.owner()) left.worker = std::move(owner);
    if (part.streams.empty() && !part.claim.may_be_on_streams()) {
      own.push_back(std::move(part.batch));
    } else if (!part.claim->stopped()) {
      part.claim.leave_to_streams();
      left.group.push_back({std::move(part.batch), std::move(part.streams), part.blocks});
    } else if (!first_error) {
      first_error =
          std::make_exception_ptr(Error(part.claim->async_error(), part.claim->cause_words()));
    }
  }
  return own;
}

}  // namespace

bool Group::holds(khoroStream_t stream) const noexcept {
  return std::any_of(calls_.begin(), calls_.end(),
                     [stream](const PendingCall& call) { return call.stream == stream; });
}

StreamHandle find_outside_group(khoroStream_t handle) {
  StreamHandle found = find_any(handle);
  if (Group::of_thread().holds(handle))
    throw Error(Code::invalid_usage,
                "a call of this thread's open group is on the stream and has not begun; end the "
                "group first");
  return found;
}

void Group::run_calls(const std::vector<PendingCall>& calls) {
  std::vector<Part> parts;
  Left left;
  for (const PendingCall& pending : calls) {
    Part& part = part_of(pending.handle, parts);
    part.batch.add(pending.call);
    part.blocks |= !pending.stream;
    if (!pending.stream) continue;
    const StreamHandle found = find_any(pending.stream);
    if (found.gpu) {
      part.on_stream(found.gpu);
      continue;
    }
    left.worker = found.worker;
    if (std::find(part.streams.begin(), part.streams.end(), found.stream) == part.streams.end())
      part.streams.push_back(found.stream);
  }
  for (const Part& part : parts) part.batch.check_messages_to_itself();
  std::exception_ptr first_error;
  std::vector<Batch> own = take_own(parts, left, first_error);
  std::vector<Communicator*> awaited;  // null: it is not
  for (const StreamQueue::Calls& calls : left.group)
    awaited.push_back(calls.awaited ? &calls.batch.communicator() : nullptr);
  const Tasks tasks = left.group.empty() ? Tasks() : left.worker->queue(std::move(left.group));
  const auto keep_first = [&first_error](auto&& work) {
    try {
      work();
    } catch (...) {
      if (!first_error) first_error = std::current_exception();
    }
  };
  // They may be ranks of one communicator: all have what they need before any is launched, since
  // who asks a GPU for memory may wait for its kernels, and all are launched before any is waited
  // for.
  std::vector<Part*> prepared;
  for (Part& part : parts)
    if (part.on_gpu())
      keep_first([&] {
        part.batch.prepare();
        prepared.push_back(&part);
      });
  for (Part* part : prepared)
    keep_first(
        [&] { part->batch.launch(part->gpu_stream ? part->gpu_stream->stream.get() : nullptr); });
  keep_first([&] { run_together(own); });
  for (Part& part : parts)
    if (part.on_gpu() && part.blocks) keep_first([&] { part.await_gpu(); });
  // All of them, whatever fails: their buffers are the caller's when it is back.
  for (std::size_t i = 0; i < tasks.size(); ++i)
    if (awaited[i]) keep_first([&] { throw_if_failed(left.worker->await(tasks[i], *awaited[i])); });
  if (first_error) std::rethrow_exception(first_error);
}

}  // namespace khoro
