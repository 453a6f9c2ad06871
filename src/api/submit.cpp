// SPDX-License-Identifier: Apache-2.0
#include "api/submit.h"

#include <fmt/format.h>

#include "base/error.h"

namespace khoro {

void throw_stream() {
  throw Error(Code::invalid_argument,
              "the stream is not NULL; host communicators take NULL, and the call blocks");
}

void defer(khoroComm_t comm, const Call& call) {
  const HandleTable::Claim communicator = handles().claim(comm);
  communicator->check(call);
  Group::of_thread().add(comm, call);
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
