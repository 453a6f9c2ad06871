// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <iterator>
#include <string>
#include <utility>

#include "api/guard.h"
#include "api/handle_table.h"
#include "base/error.h"
#include "base/log.h"
#include "communicator/attention.h"
#include "communicator/residents.h"
#include "communicator/trace_file.h"

using khoro::Code;
using khoro::Error;
using khoro::guard;
using khoro::handles;

khoroResult_t khoroGetVersion(int* version) {
  return guard([&] {
    khoro::check_out(version, "version");
    *version = KHORO_VERSION;
  });
}

const char* khoroGetErrorString(khoroResult_t result) {
  switch (result) {
    case khoroSuccess:
      return "success";
    case khoroUnhandledDeviceError:
      return "a device call failed";
    case khoroSystemError:
      return "a system call failed";
    case khoroInternalError:
      return "internal error: a fault in Khoro";
    case khoroInvalidArgument:
      return "invalid argument";
    case khoroInvalidUsage:
      return "invalid usage";
    case khoroRemoteError:
      return "another rank failed";
    case khoroInProgress:
      return "in progress";
    case khoroTimeout:
      return "the deadline passed";
    case khoroMismatch:
      return "ranks made different calls";
    case khoroAborted:
      return "the communicator was aborted";
    case khoroRevoked:
      return "the communicator was revoked";
    case khoroPeerDied:
      return "another rank died";
    case khoroNoQuorum:
      return "too few ranks are left";
    case khoroOutOfMemory:
      return "no memory left";
  }
  return "unknown result";
}

const char* khoroGetLastError(khoroComm_t comm) {
  static thread_local std::string cause;
  try {
    if (!comm) return khoro::last_failure();
    const auto pin = handles().pin(comm);
    khoro::Communicator* const communicator = pin.communicator();
    if (communicator ? !communicator->stopped() : !pin.making()->failed())
      return khoro::last_failure();
    cause = communicator ? communicator->cause_words() : pin.making()->words();
    return cause.c_str();
  } catch (const std::exception&) {
    // A handle that is none has no cause.
    return khoro::last_failure();
  }
}

khoroResult_t khoroCommGetAsyncError(khoroComm_t comm, khoroResult_t* error) {
  return guard([&] {
    khoro::check_out(error, "error");
    const auto pin = handles().pin(comm);
    khoro::Communicator* const communicator = pin.communicator();
    Code code = communicator ? communicator->async_error() : pin.making()->code();
    if (code == Code::success && handles().in_background(pin)) code = Code::in_progress;
    // Who knows of a failure may take the buffers of calls for something else.
    if (communicator && communicator->gpu() && communicator->stopped())
      khoro::Communicator::settle_gpus();
    *error = static_cast<khoroResult_t>(code);
  });
}

khoroResult_t khoroCommCount(khoroComm_t comm, int* count) {
  return guard([&] {
    khoro::check_out(count, "count");
    *count = handles().pin(comm).made().ranks();
  });
}

khoroResult_t khoroCommUserRank(khoroComm_t comm, int* rank) {
  return guard([&] {
    khoro::check_out(rank, "rank");
    *rank = handles().pin(comm).made().rank();
  });
}

khoroResult_t khoroCommAbort(khoroComm_t comm) {
  return guard([&] {
    const auto pin = handles().pin(comm);
    if (khoro::Communicator* communicator = pin.communicator())
      communicator->abort();
    else
      pin.making()->abort();
  });
}

khoroResult_t khoroCommRevoke(khoroComm_t comm, int flags) {
  return guard([&] {
    const auto pin = handles().pin(comm);
    if (flags != KHORO_REVOKE_DEFAULT)
      throw Error(Code::invalid_argument,
                  fmt::format("flags are {}; they must be KHORO_REVOKE_DEFAULT", flags));
    pin.made().revoke();
  });
}

khoroResult_t khoroCommQuery(khoroComm_t comm, khoroStatistics_t* statistics) {
  return guard([&] {
    khoro::check_out(statistics, "statistics");
    // Older programs have less: they knew of no stripes, then not of what memory is held for, then
    // of no programs on GPUs.
    const std::size_t size = statistics->size;
    const bool knows_programs = size == sizeof(khoroStatistics_t);
    const bool knows_parts = knows_programs || size == offsetof(khoroStatistics_t, programBytes);
    const bool knows_stripes = knows_parts || size == offsetof(khoroStatistics_t, recordBytes);
    if (!knows_stripes && size != offsetof(khoroStatistics_t, stripes))
      throw Error(Code::invalid_argument,
                  fmt::format("the size of statistics is {} and not {}; start from "
                              "KHORO_STATISTICS_INITIALIZER",
                              size, sizeof(khoroStatistics_t)));
    const auto now = handles().pin(comm).made().statistics();
    statistics->collectives = now.collectives;
    statistics->bytesHeld = now.held.all();
    statistics->bytesSent = now.bytes_sent;
    const std::size_t length =
        now.transports.copy(statistics->transports, sizeof statistics->transports - 1);
    statistics->transports[length] = 0;
    if (!knows_stripes) return;
    statistics->stripes = now.bytes_by_stripe.size();
    auto* const end = std::copy(now.bytes_by_stripe.begin(), now.bytes_by_stripe.end(),
                                std::begin(statistics->stripeBytes));
    std::fill(end, std::end(statistics->stripeBytes), 0);
    if (!knows_parts) return;
    statistics->recordBytes = now.held.records;
    statistics->channelBytes = now.held.channels;
    statistics->partialBytes = now.held.partials;
    statistics->keptBytes = now.held.kept;
    if (knows_programs) statistics->programBytes = now.held.programs;
  });
}

khoroResult_t khoroCommSetDeadline(khoroComm_t comm, int64_t milliseconds) {
  return guard([&] {
    const auto pin = handles().pin(comm);
    khoro::Communicator& communicator = pin.open();
    if (milliseconds < 1 || milliseconds > int64_t{1} << 40)
      throw Error(Code::invalid_argument,
                  fmt::format("a deadline of {} ms; it must be 1 to 2^40", milliseconds));
    if (communicator.stopped()) communicator.throw_cause();
    communicator.set_deadline(std::chrono::milliseconds(milliseconds));
  });
}

khoroResult_t khoroSetTraceFile(const char* path) {
  return guard([&] {
    khoro::Residents::of_process().visit_all(
        [](khoro::Communicator& communicator) { communicator.flush_trace(); });
    khoro::TraceFile& file = khoro::TraceFile::of_process();
    path ? file.open(path) : file.close();
  });
}

khoroResult_t khoroSetWaitCallback(khoroWaitFn callback, void* context) {
  return guard([&] {
    // What it is told to call must know what it may not.
    static thread_local struct {
      khoroWaitFn callback;
      void* context;
    } caller;
    caller = {callback, context};
    const auto call_back = [](void*) {
      const int depth = std::exchange(khoro::group_depth, khoro::in_callback);
      const int wanted = caller.callback(caller.context);
      khoro::group_depth = depth;
      return wanted;
    };
    khoro::attention.set(callback ? +call_back : nullptr, nullptr);
  });
}

khoroResult_t khoroSetLogCallback(khoroLogCallback sink, void* context) {
  return guard([&] { khoro::set_log_sink(sink, context); });
}
