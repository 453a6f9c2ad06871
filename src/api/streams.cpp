// SPDX-License-Identifier: Apache-2.0
#include "api/guard.h"
#include "api/stream_handles.h"

using khoro::guard;
using khoro::StreamHandle;

khoroResult_t khoroStreamCreate(khoroStream_t* stream) {
  return guard([&] {
    khoro::check_out(stream, "stream");
    const auto worker = khoro::StreamWorker::of_process();
    *stream = khoro::add(StreamHandle{worker, worker->make_stream(), nullptr});
  });
}

khoroResult_t khoroStreamDestroy(khoroStream_t stream) {
  return guard([&] {
    khoro::find_outside_group(stream);
    const StreamHandle removed = khoro::remove(stream);
    if (!removed.gpu) removed.worker->synchronize(*removed.stream);
  });
}

khoroResult_t khoroStreamSynchronize(khoroStream_t stream) {
  return guard([&] {
    const StreamHandle found = khoro::find_outside_group(stream);
    if (found.gpu) return found.gpu->stream->synchronize();
    khoro::throw_if_failed(found.worker->synchronize(*found.stream));
  });
}

khoroResult_t khoroStreamQuery(khoroStream_t stream) {
  return guard([&] {
    const StreamHandle found = khoro::find_outside_group(stream);
    if (found.gpu) return found.gpu->stream->idle() ? khoroSuccess : khoroInProgress;
    return khoro::result_of(found.worker->query(*found.stream));
  });
}

khoroResult_t khoroStreamWaitEvent(khoroStream_t stream, khoroEvent_t event) {
  return guard([&] {
    const StreamHandle found = khoro::find_of_host(stream);
    const khoro::EventHandle waited_for = khoro::find(event);
    found.worker->wait(found.stream, *waited_for.event);
  });
}
