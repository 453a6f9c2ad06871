/* SPDX-License-Identifier: Apache-2.0 */
/* Khoro: collective communication between the ranks of a job. C11.
 *
 * Words used below.
 *   blocks       the call returns when its result is there, at latest at the communicator's
 * deadline collective   every rank of the communicator must make the call, in the same order
 *   thread-bound one thread at a time per communicator; a second one gets khoroInvalidUsage
 *   thread-safe  any thread, any time
 *   in place     input and output are the same memory in the one way that the function documents;
 *                every other overlap is khoroInvalidArgument
 * Out-parameters are written only on success. Handles are numbers in a table: a stale or invented
 * one is khoroInvalidArgument, never a crash. Errors that come from the arguments alone
 * (khoroInvalidArgument, khoroInvalidUsage) leave the communicator as it was; every other error
 * poisons it, and what follows returns that first cause. khoroGetLastError() has the words. */
#ifndef KHORO_H
#define KHORO_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define KHORO_API __attribute__((visibility("default")))
#else
#define KHORO_API
#endif

#define KHORO_VERSION_MAJOR 0
#define KHORO_VERSION_MINOR 1
#define KHORO_VERSION_PATCH 0
#define KHORO_VERSION \
  (KHORO_VERSION_MAJOR * 10000 + KHORO_VERSION_MINOR * 100 + KHORO_VERSION_PATCH)

/* Results. 0..8 have the values of NCCL's results. */
typedef enum {
  khoroSuccess = 0,
  khoroUnhandledDeviceError = 1,
  khoroSystemError = 2,
  khoroInternalError = 3,
  khoroInvalidArgument = 4,
  khoroInvalidUsage = 5,
  khoroRemoteError = 6,
  khoroInProgress = 7,
  khoroTimeout = 8,
  khoroMismatch = 9,
  khoroAborted = 10,
  khoroRevoked = 11,
  khoroPeerDied = 12,
  khoroNoQuorum = 13,
  khoroOutOfMemory = 14
} khoroResult_t;

/* Element types. The values are NCCL's. */
typedef enum {
  khoroInt32 = 2,
  khoroInt64 = 4,
  khoroFloat32 = 7,
  khoroFloat64 = 8,
  khoroBfloat16 = 9
} khoroDataType_t;

/* Reductions. The values are NCCL's. avg divides the folded sum by the number of ranks once;
 * integers truncate toward zero. min and max of a NaN are NaN; -0.0 < +0.0. Integers wrap. */
typedef enum { khoroSum = 0, khoroMax = 2, khoroMin = 3, khoroAvg = 4 } khoroRedOp_t;

/* A communicator: this rank's membership in a group of ranks. NULL is never valid. */
typedef struct khoroComm* khoroComm_t;
/* Host communicators take NULL: the call blocks. */
typedef struct khoroStream* khoroStream_t;

/* 128 bytes that ranks pass to each other before they meet. Whoever can read it may join: it holds
 * the key of the job. Never print it. */
typedef struct {
  char internal[128];
} khoroUniqueId;

/* The version of the library that runs: KHORO_VERSION of its header. Thread-safe.
 * Results: khoroSuccess, khoroInvalidArgument (NULL). */
KHORO_API khoroResult_t khoroGetVersion(int* version);

/* The name of a result in words. Thread-safe; the string is static. */
KHORO_API const char* khoroGetErrorString(khoroResult_t result);

/* What the last failed call of this thread said: what was wrong, where, and what to do. `comm` is
 * ignored unless it is poisoned: then it is its first cause. Thread-safe. The string belongs to the
 * library and lives until the next call of this thread. */
KHORO_API const char* khoroGetLastError(khoroComm_t comm);

/* Makes an id and listens for the ranks that will present it, until the communicator is made or the
 * init deadline has passed: counted from this call while no rank has come, then from the ranks'.
 * Exactly one rank calls it, in the process that will be rank 0's.
 * Results: khoroSuccess, khoroInvalidArgument (NULL), khoroSystemError. Thread-safe. */
KHORO_API khoroResult_t khoroGetUniqueId(khoroUniqueId* id);

/* Joins as rank `rank` of `nranks`. Collective over the ranks; blocks until all have come or the
 * init deadline has passed, when the missing ranks are named. In a group it runs, and writes
 * `comm`, at the group's end. Ranks may be processes, threads of one process, or both. The caller
 * owns the communicator and destroys it. Results: khoroSuccess, khoroInvalidArgument, khoroTimeout,
 * khoroPeerDied, khoroRemoteError, khoroSystemError, khoroOutOfMemory. */
KHORO_API khoroResult_t khoroCommInitRank(khoroComm_t* comm, int nranks, khoroUniqueId id,
                                          int rank);

/* Joins the job that the launcher describes: the k-th call of a process is its thread k.
 * Collective; blocks as khoroCommInitRank. Results: as khoroCommInitRank, and khoroInvalidUsage
 * without a launcher or when all threads of this process have joined. */
KHORO_API khoroResult_t khoroCommInitWorld(khoroComm_t* comm);

/* Makes `n` ranks in this process, connected directly; `comms` has room for n. Each is then used by
 * a thread of its own, or by one thread through groups. Not collective. Results: khoroSuccess,
 * khoroInvalidArgument, khoroSystemError, khoroOutOfMemory. */
KHORO_API khoroResult_t khoroCommInitAllHost(khoroComm_t* comms, int n);

/* Ends this rank's membership and frees it; calls under way on it must have returned. Blocks no
 * longer than peers need to see the end of the last call. A second destroy is khoroInvalidArgument.
 * Results: khoroSuccess, khoroInvalidArgument, khoroInvalidUsage (another thread is in a call). */
KHORO_API khoroResult_t khoroCommDestroy(khoroComm_t comm);

/* Frees every thread, here and on the other ranks, that waits in this communicator: their calls
 * return khoroAborted. Thread-safe; returns within 1 s. The handle stays valid until destroyed.
 * Results: khoroSuccess, khoroInvalidArgument. */
KHORO_API khoroResult_t khoroCommAbort(khoroComm_t comm);

/* The first cause that poisoned the communicator, khoroSuccess if none. Thread-safe, never blocks.
 */
KHORO_API khoroResult_t khoroCommGetAsyncError(khoroComm_t comm, khoroResult_t* error);

KHORO_API khoroResult_t khoroCommCount(khoroComm_t comm, int* count);
KHORO_API khoroResult_t khoroCommUserRank(khoroComm_t comm, int* rank);

/* Operations that begin after this call end within `milliseconds` (1 .. 2^40); the default is 10
 * minutes. Local. Results: khoroSuccess, khoroInvalidArgument. */
KHORO_API khoroResult_t khoroCommSetDeadline(khoroComm_t comm, int64_t milliseconds);

/* The collectives. All are collective, thread-bound, and block when `stream` is NULL outside a
 * group; in a group they start and finish at khoroGroupEnd. Counts are in elements; count 0, on all
 * ranks, is legal and ignores the pointers. Buffers are borrowed until the call has finished;
 * inputs are never written unless in place; on error outputs are undefined. Results: khoroSuccess,
 * khoroInvalidArgument, khoroInvalidUsage, khoroTimeout, khoroMismatch, khoroAborted,
 * khoroPeerDied, khoroRemoteError, khoroOutOfMemory. */

/* recvbuff[i] = reduction of sendbuff[i] over all ranks. In place: sendbuff == recvbuff. */
KHORO_API khoroResult_t khoroAllReduce(const void* sendbuff, void* recvbuff, size_t count,
                                       khoroDataType_t datatype, khoroRedOp_t op, khoroComm_t comm,
                                       khoroStream_t stream);

/* recvbuff[i] = sendbuff[i] of `root`; sendbuff is ignored elsewhere. In place: sendbuff ==
 * recvbuff. */
KHORO_API khoroResult_t khoroBroadcast(const void* sendbuff, void* recvbuff, size_t count,
                                       khoroDataType_t datatype, int root, khoroComm_t comm,
                                       khoroStream_t stream);

/* recvbuff[r*sendcount + i] = sendbuff[i] of rank r. In place: sendbuff == recvbuff +
 * rank*sendcount. */
KHORO_API khoroResult_t khoroAllGather(const void* sendbuff, void* recvbuff, size_t sendcount,
                                       khoroDataType_t datatype, khoroComm_t comm,
                                       khoroStream_t stream);

/* recvbuff[i] = reduction of sendbuff[rank*recvcount + i] over all ranks. In place: recvbuff ==
 * sendbuff + rank*recvcount. */
KHORO_API khoroResult_t khoroReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                                           khoroDataType_t datatype, khoroRedOp_t op,
                                           khoroComm_t comm, khoroStream_t stream);

/* Returns after every rank has called it. */
KHORO_API khoroResult_t khoroBarrier(khoroComm_t comm, khoroStream_t stream);

/* Point to point: the k-th send to a peer meets the k-th receive from it; both ends name the same
 * count and type. Not collective. A send may return before its receiver has come, when the data
 * fits in buffers. To oneself: only within a group that holds both. */
KHORO_API khoroResult_t khoroSend(const void* sendbuff, size_t count, khoroDataType_t datatype,
                                  int peer, khoroComm_t comm, khoroStream_t stream);
KHORO_API khoroResult_t khoroRecv(void* recvbuff, size_t count, khoroDataType_t datatype, int peer,
                                  khoroComm_t comm, khoroStream_t stream);

/* What this thread calls between the two starts and finishes at the end of the outermost group,
 * which drives all communicators of the thread together. Collectives of one communicator run in the
 * order of their calls; sends and receives progress beside them and beside each other, in order per
 * peer. Arguments are checked at the call; what else fails, fails khoroGroupEnd. Results of
 * khoroGroupEnd: those of the calls in it, and khoroInvalidUsage without a start. */
KHORO_API khoroResult_t khoroGroupStart(void);
KHORO_API khoroResult_t khoroGroupEnd(void);

/* Log lines go to `sink` (level: 1 error, 2 warning, 3 info, 4 trace) instead of standard error,
 * from any thread; NULL means standard error again. Thread-safe. The sink must not call Khoro. */
typedef void (*khoroLogCallback)(void* context, int level, const char* line);
KHORO_API khoroResult_t khoroSetLogCallback(khoroLogCallback sink, void* context);

#ifdef __cplusplus
}
#endif

#endif
