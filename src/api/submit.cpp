// SPDX-License-Identifier: Apache-2.0
#include "api/submit.h"

#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "api/stream_handles.h"
#include "base/error.h"

namespace khoro {

void check_stream(const Communicator& communicator, const StreamHandle& stream) {
  const GpuSide* const gpu = communicator.gpu();
  const GpuStream* const found = stream.gpu.get();
  if (!gpu && !found) return;
  if (!gpu)
    throw Error(Code::invalid_usage,
                "the stream is one of a GPU, and the communicator on memory of the host; use a "
                "stream that khoroStreamCreate has made, or NULL");
  if (!found)
    throw Error(Code::invalid_usage,
                "the stream is one of the host, and the communicator on GPUs; use one of "
                "khoroDeviceStreamCreate or khoroDeviceStreamBorrow, or NULL");
  if (found->driver.get() != &gpu->driver() || found->device != gpu->device())
    throw Error(
        Code::invalid_usage,
        fmt::format("the stream is one of {} GPU {}, and this rank is on {} GPU {}",
                    found->driver->name(), found->device, gpu->driver().name(), gpu->device()));
}

void defer(khoroComm_t comm, khoroStream_t stream, Call& call) {
  const HandleTable::Claim communicator = handles().claim_with_streams(comm);
  if (stream) check_stream(*communicator, find_any(stream));
  communicator->check(call);
  Group::of_thread().add(comm, stream, call);
}

void queue(khoroComm_t comm, khoroStream_t stream, Call& call) {
  const StreamHandle target = find_any(stream);
  HandleTable::Claim communicator = handles().claim_with_streams(comm);
  check_stream(*communicator, target);
  communicator->check(call);
  check_alone(*communicator, call);
  if (communicator->stopped()) communicator->throw_cause();
  if (target.gpu) return communicator->launch(call, target.gpu->stream.get());
  std::vector<StreamQueue::Calls> group;
  group.push_back({Batch(*communicator), {target.stream}});
  group.back().batch.add(call);
  communicator.leave_to_streams();
  target.worker->queue(std::move(group));
}

void run_behind_streams(khoroComm_t comm, Call& call) {
  HandleTable::Claim communicator = handles().claim_with_streams(comm);
  communicator->check(call);
  check_alone(*communicator, call);
  const std::shared_ptr<StreamWorker> worker = communicator.owner();
  if (!worker) return communicator->run(call);
  if (communicator->stopped()) communicator->throw_cause();
  std::vector<StreamQueue::Calls> group;
  group.push_back({Batch(*communicator), {}, true});
  group.back().batch.add(call);
  throw_if_failed(worker->await(worker->queue(std::move(group)).front(), *communicator));
}

Call with_own(khoroComm_t comm, khoroRedOp_t op, Call call) {
  const auto number = static_cast<std::uint32_t>(op);
  std::shared_ptr<const OwnReduction> own =
      handles().pin(comm).made().own_reductions().find(number);
  if (!own) return call;
  if (own->scalar) {
    auto now = std::make_shared<OwnReduction>(*own);
    std::memcpy(now->factor.data(), own->scalar, find(own->dtype)->bytes);
    own = std::move(now);
  }
  call.signature.reduction = own->kind;
  call.own = own.get();
  struct Both {
    std::shared_ptr<const OwnReduction> own;
    std::shared_ptr<const Blocks> blocks;
  };
  auto both = std::make_shared<const Both>(Both{std::move(own), std::move(call.blocks)});
  const Blocks* const blocks = both->blocks.get();
  call.blocks = std::shared_ptr<const Blocks>(std::move(both), blocks);
  return call;
}

void check_alone(const Communicator& communicator, const Call& call) {
  const Signature& signature = call.signature;
  if (!signature.point_to_point() || signature.peer != communicator.rank()) return;
  throw Error(
      Code::invalid_usage,
      fmt::format("{} by that rank itself would wait for ever; put the send and the receive "
                  "into one group",
                  describe(signature, call.tag)));
}

}  // namespace khoro
