// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "api/handles.h"
#include "communicator/gpus.h"
#include "communicator/stream_worker.h"
#include "khoro/khoro.h"

namespace khoro {

/// A stream of a GPU.
struct GpuStream {
  std::shared_ptr<Driver> driver;
  int device = 0;
  std::unique_ptr<DeviceStream> stream;  // ends before its driver
};

/// What a handle of a stream stands for, and what keeps it going: one of the host, or of a GPU.
struct StreamHandle {
  std::shared_ptr<StreamWorker> worker;
  std::shared_ptr<Stream> stream;
  std::shared_ptr<GpuStream> gpu;  // null: of the host
};
struct EventHandle {
  std::shared_ptr<StreamWorker> worker;
  std::shared_ptr<Event> event;
};

khoroStream_t add(StreamHandle stream);
khoroEvent_t add(EventHandle event);

/// Throw invalid_argument for a handle that is none.
StreamHandle find_any(khoroStream_t handle);
EventHandle find(khoroEvent_t handle);
/// Throws also invalid_usage if the open group of this thread has put off a call on the stream.
StreamHandle find_outside_group(khoroStream_t handle);
/// The same, and if it is a stream of a GPU: for what those of the host alone have.
StreamHandle find_of_host(khoroStream_t handle);
/// The same, and the handle is stale from then on.
StreamHandle remove(khoroStream_t handle);
EventHandle remove(khoroEvent_t handle);

/// Throws what a completion says, unless it is success.
void throw_if_failed(const Completion& completion);
/// The same, of what may still be under way.
khoroResult_t result_of(const Completion& completion);

}  // namespace khoro
