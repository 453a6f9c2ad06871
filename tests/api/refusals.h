/* SPDX-License-Identifier: Apache-2.0 */
/* Every call on a handle, where all of them must be refused with the same result and words. */
#ifndef KHORO_TESTS_REFUSALS_H
#define KHORO_TESTS_REFUSALS_H

#include "check.h"

struct refusal {
  khoroResult_t result;
  const char* words;
};

#define REFUSED(call) CHECK_REFUSED(refusal.result, refusal.words, call)

static inline void check_comm_refused(khoroComm_t comm, struct refusal refusal) {
  float in[4] = {0}, out[4] = {0};
  int number = 77;
  khoroResult_t error = khoroInternalError;
  khoroComm_t child = NULL;
  void* handle = NULL;
  khoroStatistics_t statistics = KHORO_STATISTICS_INITIALIZER;
  REFUSED(khoroAllReduce(in, out, 4, khoroFloat32, khoroSum, comm, NULL));
  REFUSED(khoroReduceScatter(in, out, 1, khoroFloat32, khoroSum, comm, NULL));
  REFUSED(khoroAllGather(in, out, 1, khoroFloat32, comm, NULL));
  REFUSED(khoroBroadcast(in, out, 1, khoroFloat32, 0, comm, NULL));
  REFUSED(khoroBarrier(comm, NULL));
  REFUSED(khoroSend(in, 1, khoroFloat32, 0, comm, NULL));
  REFUSED(khoroRecv(out, 1, khoroFloat32, 0, comm, NULL));
  REFUSED(khoroCommSplit(comm, 0, 0, &child, NULL));
  REFUSED(khoroCommRegister(comm, in, sizeof in, &handle));
  REFUSED(khoroCommDeregister(comm, &number));
  REFUSED(khoroCommCount(comm, &number));
  REFUSED(khoroCommUserRank(comm, &number));
  REFUSED(khoroCommQuery(comm, &statistics));
  REFUSED(khoroCommGetAsyncError(comm, &error));
  REFUSED(khoroCommSetDeadline(comm, 5));
  REFUSED(khoroCommRevoke(comm, KHORO_REVOKE_DEFAULT));
  REFUSED(khoroCommAbort(comm));
  REFUSED(khoroCommFinalize(comm));
  REFUSED(khoroCommDestroy(comm));
  CHECK(number == 77 && error == khoroInternalError && !child && !handle &&
        statistics.bytesHeld == 0);
}

/* Of a stream, beside an event that is no reason to refuse. */
static inline void check_stream_refused(khoroStream_t stream, khoroEvent_t event,
                                        struct refusal refusal) {
  REFUSED(khoroStreamSynchronize(stream));
  REFUSED(khoroStreamQuery(stream));
  REFUSED(khoroStreamWaitEvent(stream, event));
  REFUSED(khoroEventRecord(event, stream));
  REFUSED(khoroStreamDestroy(stream));
}

static inline void must_not_be_called(void* context, khoroResult_t result) {
  (void)context, (void)result;
  CHECK(!"called back");
}

/* Of an event, beside a stream that is no reason to refuse. */
static inline void check_event_refused(khoroEvent_t event, khoroStream_t stream,
                                       struct refusal refusal) {
  int number = 77;
  REFUSED(khoroEventRecord(event, stream));
  REFUSED(khoroStreamWaitEvent(stream, event));
  REFUSED(khoroEventQuery(event));
  REFUSED(khoroEventWait(event, 0));
  REFUSED(khoroEventDescriptor(event, &number));
  REFUSED(khoroEventCallback(event, must_not_be_called, NULL));
  REFUSED(khoroEventDestroy(event));
  CHECK(number == 77);
}

#endif
