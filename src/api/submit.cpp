// SPDX-License-Identifier: Apache-2.0
#include "api/submit.h"

#include <fmt/format.h>

#include <memory>
#include <utility>
#include <vector>

#include "api/stream_handles.h"
#include "base/error.h"

namespace khoro {

void defer(khoroComm_t comm, khoroStream_t stream, const Call& call) {
  if (stream) find(stream);
  const HandleTable::Claim communicator = handles().claim_with_streams(comm);
  communicator->check(call);
  Group::of_thread().add(comm, stream, call);
}

void queue(khoroComm_t comm, khoroStream_t stream, const Call& call) {
  const StreamHandle target = find(stream);
  HandleTable::Claim communicator = handles().claim_with_streams(comm);
  communicator->check(call);
  check_alone(*communicator, call);
  if (communicator->stopped()) communicator->throw_cause();
  std::vector<StreamQueue::Calls> group;
  group.push_back({Batch(*communicator), {target.stream}});
  group.back().batch.add(call);
  communicator.leave_to_streams();
  target.worker->queue(std::move(group));
}

void run_behind_streams(khoroComm_t comm, const Call& call) {
  HandleTable::Claim communicator = handles().claim_with_streams(comm);
  communicator->check(call);
  check_alone(*communicator, call);
  const std::shared_ptr<StreamWorker> worker = communicator.owner();
  if (!worker) return communicator->run(call);
  if (communicator->stopped()) communicator->throw_cause();
  std::vector<StreamQueue::Calls> group;
  group.push_back({Batch(*communicator), {}, true});
  group.back().batch.add(call);
  throw_if_failed(worker->await(worker->queue(std::move(group)).front()));
}

void check_alone(const Communicator& communicator, const Call& call) {
  const Signature& signature = call.signature;
  if (!signature.point_to_point() || signature.peer != communicator.rank()) return;
  throw Error(
      Code::invalid_usage,
      fmt::format("{} by that rank itself would wait for ever; put the send and the receive "
                  "into one group",
                  describe(signature)));
}

}  // namespace khoro
