// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <utility>

#include "api/groups.h"
#include "api/guard.h"
#include "api/handle_table.h"
#include "api/stream_handles.h"
#include "communicator/call.h"
#include "khoro/khoro.h"

namespace khoro {

/// A caller's number as one of ours. What fits none becomes 255, which has no row and is refused
/// with the other bad ones; so do those of reductions that were made, until with_own().
inline Dtype dtype(khoroDataType_t value) noexcept {
  const auto number = static_cast<unsigned>(value);
  return static_cast<Dtype>(number < 255 ? number : 255);
}
inline Reduction reduction(khoroRedOp_t value) noexcept {
  const auto number = static_cast<unsigned>(value);
  return static_cast<Reduction>(number < static_cast<unsigned>(Reduction::premul) ? number : 255);
}
/// The number may have been given to a reduction that was made.
inline bool is_own(khoroRedOp_t value) noexcept {
  return static_cast<unsigned>(value) >= OwnReductions::first;
}

inline CallBuffers buffers(const void* input, void* output) noexcept {
  return {static_cast<const std::byte*>(input), static_cast<std::byte*>(output)};
}

/// Checks the call and puts it off to the end of the group.
void defer(khoroComm_t comm, khoroStream_t stream, Call& call);
/// Queues the call on the stream.
void queue(khoroComm_t comm, khoroStream_t stream, Call& call);
/// Makes the call after those that are queued on streams, and blocks until it has finished.
void run_behind_streams(khoroComm_t comm, Call& call);
/// Throws invalid_usage if calls of the communicator cannot be on the stream.
void check_stream(const Communicator& communicator, const StreamHandle& stream);
/// Throws invalid_usage if the call is a message to the calling rank itself, alone.
void check_alone(const Communicator& communicator, const Call& call);

/// The call with the reduction to which that number was given; as it is if there is none.
Call with_own(khoroComm_t comm, khoroRedOp_t op, Call call);

/// Makes a call now, or at the end of the group. Throws `Error`.
inline void submit(khoroComm_t comm, khoroStream_t stream, Call&& call) {
  if (group_depth > 0) return defer(comm, stream, call);
  if (stream) return queue(comm, stream, call);
  const HandleTable::Claim communicator = handles().try_claim(comm);
  if (!communicator) return run_behind_streams(comm, call);
  communicator->check(call);
  check_alone(*communicator, call);
  communicator->run(call);
}

/// The same of a call that reduces.
inline void submit(khoroComm_t comm, khoroStream_t stream, khoroRedOp_t op, Call&& call) {
  if (is_own(op)) return submit(comm, stream, with_own(comm, op, std::move(call)));
  submit(comm, stream, std::move(call));
}

}  // namespace khoro
