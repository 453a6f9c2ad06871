// SPDX-License-Identifier: Apache-2.0
#include "api/stream_handles.h"

#include <utility>

#include "base/error.h"

namespace khoro {
namespace {

struct StreamEntry : HandleEntry {
  static constexpr std::uint32_t kind = 1;
  static constexpr auto null_words =
      "the stream is NULL; make one with khoroStreamCreate. A call with stream NULL has finished "
      "when it returns, so there is nothing to wait for";
  static constexpr auto stale_words =
      "the stream handle is stale or was never made; use each handle as khoroStreamCreate wrote "
      "it, and not after khoroStreamDestroy";
  static constexpr auto limit_words = "65,536 streams are in use";
  StreamHandle held;
};

struct EventEntry : HandleEntry {
  static constexpr std::uint32_t kind = 2;
  static constexpr auto null_words = "the event is NULL; make one with khoroEventCreate";
  static constexpr auto stale_words =
      "the event handle is stale or was never made; use each handle as khoroEventCreate wrote it, "
      "and not after khoroEventDestroy";
  static constexpr auto limit_words = "65,536 events are in use";
  EventHandle held;
};

/// Like that of communicators, they live until the process ends.
auto& streams() {
  static auto* const table = new Handles<khoroStream_t, StreamEntry>;
  return *table;
}
auto& events() {
  static auto* const table = new Handles<khoroEvent_t, EventEntry>;
  return *table;
}

}  // namespace

khoroStream_t add(StreamHandle stream) { return streams().add(std::move(stream)); }
khoroEvent_t add(EventHandle event) { return events().add(std::move(event)); }

StreamHandle find_any(khoroStream_t handle) { return streams().pin(handle)->held; }
EventHandle find(khoroEvent_t handle) { return events().pin(handle)->held; }

StreamHandle find_of_host(khoroStream_t handle) {
  StreamHandle found = find_outside_group(handle);
  if (found.gpu)
    throw Error(Code::invalid_usage,
                "the stream is one of a GPU; use the events of its driver, or a stream that "
                "khoroStreamCreate has made");
  return found;
}

StreamHandle remove(khoroStream_t handle) { return streams().remove(handle); }
EventHandle remove(khoroEvent_t handle) { return events().remove(handle); }

void throw_if_failed(const Completion& completion) {
  if (completion.failed()) throw Error(completion.code, completion.words);
}

khoroResult_t result_of(const Completion& completion) {
  if (completion.code == Code::in_progress) return khoroInProgress;
  throw_if_failed(completion);
  return khoroSuccess;
}

}  // namespace khoro
