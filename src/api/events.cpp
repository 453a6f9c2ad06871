// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdint>

#include "api/guard.h"
#include "api/stream_handles.h"
#include "base/error.h"
#include "base/system.h"

using khoro::Code;
using khoro::Completion;
using khoro::EventHandle;
using khoro::guard;
using khoro::result_of;

namespace {

/// Negative, and more than a life: for ever.
khoro::Time from_now(std::int64_t milliseconds) {
  constexpr std::int64_t life = std::int64_t{1} << 40;
  if (milliseconds < 0 || milliseconds > life) return khoro::never;
  return khoro::machine().now() + std::chrono::milliseconds(milliseconds);
}

/// Calls back in the name of Khoro's thread, which keeps the words meanwhile.
void call_back(khoroEventFn callback, void* context, const Completion& completion) noexcept {
  khoro::keep_failure(completion.code, completion.words);
  khoro::group_depth = khoro::in_callback;
  callback(context, static_cast<khoroResult_t>(completion.code));
  khoro::group_depth = 0;
}

}  // namespace

khoroResult_t khoroEventCreate(khoroEvent_t* event) {
  return guard([&] {
    khoro::check_out(event, "event");
    *event = khoro::add(
        EventHandle{khoro::StreamWorker::of_process(), std::make_shared<khoro::Event>()});
  });
}

khoroResult_t khoroEventDestroy(khoroEvent_t event) {
  return guard([&] {
    const EventHandle removed = khoro::remove(event);
    removed.worker->close_descriptor(*removed.event);
  });
}

khoroResult_t khoroEventRecord(khoroEvent_t event, khoroStream_t stream) {
  return guard([&] {
    const EventHandle recorded = khoro::find(event);
    recorded.worker->record(recorded.event, khoro::find_of_host(stream).stream);
  });
}

khoroResult_t khoroEventQuery(khoroEvent_t event) {
  return guard([&] {
    const EventHandle found = khoro::find(event);
    return result_of(found.worker->await(*found.event, khoro::Time()));
  });
}

khoroResult_t khoroEventWait(khoroEvent_t event, int64_t milliseconds) {
  return guard([&] {
    const EventHandle found = khoro::find(event);
    return result_of(found.worker->await(*found.event, from_now(milliseconds)));
  });
}

khoroResult_t khoroEventDescriptor(khoroEvent_t event, int* fd) {
  return guard([&] {
    khoro::check_out(fd, "fd");
    const EventHandle found = khoro::find(event);
    *fd = found.worker->descriptor(*found.event);
  });
}

khoroResult_t khoroEventCallback(khoroEvent_t event, khoroEventFn callback, void* context) {
  return guard([&] {
    const EventHandle found = khoro::find(event);
    if (!callback)
      throw khoro::Error(Code::invalid_argument, "the callback is NULL; pass the function to call");
    found.worker->call_back(*found.event, [callback, context](const Completion& completion) {
      call_back(callback, context, completion);
    });
  });
}
