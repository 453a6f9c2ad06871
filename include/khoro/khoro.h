/* SPDX-License-Identifier: Apache-2.0 */
/* Khoro: collective communication between the ranks of a job. C11.
 *
 * Words used below.
 *   blocks       the call returns when its result is there, at latest at the deadline of the
 *                communicator
 *   collective   every rank of the communicator must make the call, in the same order
 *   local        no other rank need make a call for it
 *   thread-bound one thread at a time per communicator; a second one gets khoroInvalidUsage
 *   thread-safe  any thread, any time
 *   in place     input and output are the same memory in the one way that the function documents;
 *                every other overlap is khoroInvalidArgument
 * Out-parameters are written only on success. Handles are numbers in a table: a stale or invented
 * one is khoroInvalidArgument, never a crash. Errors that come from the arguments alone
 * (khoroInvalidArgument, khoroInvalidUsage) leave the communicator as it was; every other error
 * poisons it: queries, async error, revoke, abort and destroy still work, everything else returns
 * that first cause. khoroGetLastError() has the words. In a child that was forked from a process
 * that uses Khoro every call but khoroGetErrorString() and khoroGetLastError() is
 * khoroInvalidUsage; a program that the child runs begins anew. Besides the results that a call
 * names it may have khoroOutOfMemory, and khoroInternalError, which is a fault of Khoro's. What a
 * call is given is borrowed until it returns, unless it says more. */
#ifndef KHORO_H
#define KHORO_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

/* C++ is told the type that C gives an enumeration anyway, so that a number which is none of its
 * names can be passed, and refused. */
#ifdef __cplusplus
#define KHORO_ENUM_TYPE : unsigned int
#else
#define KHORO_ENUM_TYPE
#endif

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
typedef enum KHORO_ENUM_TYPE {
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

/* Element types. The values are NCCL's. Of the 8-bit floats (OCP's E4M3 and E5M2) the first has no
 * infinity. */
typedef enum KHORO_ENUM_TYPE {
  khoroInt8 = 0,
  khoroUint8 = 1,
  khoroInt32 = 2,
  khoroUint32 = 3,
  khoroInt64 = 4,
  khoroUint64 = 5,
  khoroFloat16 = 6,
  khoroFloat32 = 7,
  khoroFloat64 = 8,
  khoroBfloat16 = 9,
  khoroFloat8e4m3 = 10,
  khoroFloat8e5m2 = 11
} khoroDataType_t;

/* Reductions. The values are NCCL's, but for the last three, which NCCL lacks: and, or, xor of the
 * bits of integers. avg divides the folded sum by the number of ranks once; integers truncate
 * toward zero. min and max of a NaN are NaN; -0.0 < +0.0. Integers wrap. Partial results of 8-bit
 * floats, and those of averages of 16-bit ones, are 32-bit floats. What is reduced to an 8-bit
 * float and is too large for it, an infinity too, becomes its largest finite value; a NaN stays
 * NaN. Others can be made: reductions.h. */
typedef enum KHORO_ENUM_TYPE {
  khoroSum = 0,
  khoroProd = 1,
  khoroMax = 2,
  khoroMin = 3,
  khoroAvg = 4,
  khoroBand = 16,
  khoroBor = 17,
  khoroBxor = 18
} khoroRedOp_t;

/* A communicator: this rank's membership in a group of ranks. NULL is never valid. */
typedef struct khoroComm* khoroComm_t;
/* Work in order, done behind the caller's back. Calls with stream NULL block instead. */
typedef struct khoroStream* khoroStream_t;
/* A place in a stream, to ask and to wait for. */
typedef struct khoroEvent* khoroEvent_t;
/* Calls that are prepared once and made often. */
typedef struct khoroPlan* khoroPlan_t;

/* A communicator that does not block (blocking = 0 in its config) is in progress until it is made:
 * khoroCommGetAsyncError says khoroInProgress, then khoroSuccess or why it failed. Until then it
 * can be aborted and destroyed, and every other call on it is khoroInvalidUsage; if it failed, they
 * return the cause. Only what makes communicators does not block: calls with stream NULL block. */

/* 128 bytes that ranks pass to each other before they meet. Whoever can read it may join: it holds
 * the key of the job. Never print it. */
typedef struct {
  char internal[128];
} khoroUniqueId;

/* What is chosen for one communicator. Start from KHORO_CONFIG_INITIALIZER and change what shall
 * differ; a field left undefined keeps its default. */
typedef struct {
  /* For the initializer alone. */
  size_t size;
  unsigned int magic;
  unsigned int version;
  /* 0: what makes this communicator returns khoroInProgress at once; undefined or 1: when it is
   * made. */
  int blocking;
  /* Settings of scope rank and job, as `khoro info` lists them: "KHORO_DEADLINE=5s;KHORO_SLOTS=16".
   * Those of scope job must be the same on all ranks. The environment wins. Borrowed for the call.
   * Undefined: none. */
  const char* settings;
} khoroConfig_t;

#define KHORO_CONFIG_UNDEF_INT INT_MIN
#define KHORO_CONFIG_UNDEF_PTR NULL
#define KHORO_CONFIG_MAGIC 0x6b686f63u
#define KHORO_CONFIG_INITIALIZER                                                      \
  {                                                                                   \
    sizeof(khoroConfig_t), KHORO_CONFIG_MAGIC, KHORO_VERSION, KHORO_CONFIG_UNDEF_INT, \
        KHORO_CONFIG_UNDEF_PTR                                                        \
  }

/* The version of the library that runs: KHORO_VERSION of its header. Thread-safe.
 * Results: khoroSuccess, khoroInvalidArgument (NULL). */
KHORO_API khoroResult_t khoroGetVersion(int* version);

/* The name of a result in words, never NULL. Thread-safe; the string is static. */
KHORO_API const char* khoroGetErrorString(khoroResult_t result);

/* What the last failed call of this thread said: what was wrong, where, and what to do. `comm` is
 * ignored unless it is poisoned, or could not be made: then it is why. Thread-safe. The string
 * belongs to the library and lives until the next call of this thread. */
KHORO_API const char* khoroGetLastError(khoroComm_t comm);

/* Makes an id and listens for the ranks that will present it, until the communicator is made or the
 * init deadline has passed: counted from this call while no rank has come, then from the ranks'.
 * Exactly one rank calls it, in the process that will be rank 0's. Local, thread-safe. Results:
 * khoroSuccess, khoroInvalidArgument, also for an init deadline that is not legal, and
 * khoroSystemError. */
KHORO_API khoroResult_t khoroGetUniqueId(khoroUniqueId* id);

/* Joins as rank `rank` of `nranks`. Collective over the ranks; blocks until all have come or the
 * init deadline has passed, when the missing ranks are named. In a group it runs, and writes
 * `comm`, at the group's end. Ranks may be processes, threads of one process, or both. Thread-safe.
 * The caller owns the communicator and destroys it. Results: khoroSuccess, khoroInvalidArgument,
 * khoroMismatch (ranks have settings that must be the same, and are not), khoroTimeout,
 * khoroPeerDied, khoroRemoteError, khoroSystemError, khoroOutOfMemory. */
KHORO_API khoroResult_t khoroCommInitRank(khoroComm_t* comm, int nranks, khoroUniqueId id,
                                          int rank);

/* Joins the job that the launcher describes: `khoro run`, torchrun, mpirun of Open MPI or of MPICH,
 * or whoever sets RANK, WORLD_SIZE and MASTER_PORT; the innermost of them counts (man khoro,
 * LAUNCHERS). The k-th call of a process is its thread k, for which only `khoro run` has more than
 * one. Else as khoroCommInitRank. Results: also khoroInvalidUsage without a launcher or when all
 * threads of this process have joined, and khoroInvalidArgument for a launcher that cannot be
 * followed: it passes no key and does not say which job this is, or has ranks on several
 * machines. */
KHORO_API khoroResult_t khoroCommInitWorld(khoroComm_t* comm);

/* The same with what `config` chooses; NULL chooses nothing. Results: also khoroInProgress if it
 * does not block, and khoroInvalidArgument for a config that was not made from
 * KHORO_CONFIG_INITIALIZER, a name that is no setting of a communicator, and a value that is not
 * legal. */
KHORO_API khoroResult_t khoroCommInitRankConfig(khoroComm_t* comm, int nranks, khoroUniqueId id,
                                                int rank, const khoroConfig_t* config);
KHORO_API khoroResult_t khoroCommInitWorldConfig(khoroComm_t* comm, const khoroConfig_t* config);

/* The caller's own way to pass bytes: writes what every rank gives, `bytes` each, to `all` in the
 * order of ranks, and returns when it is there. Collective over the ranks. Both buffers are
 * Khoro's; it has them back when the function returns: khoroSuccess, or what the init is to return.
 */
typedef khoroResult_t (*khoroAllGatherFn)(void* context, const void* mine, void* all, size_t bytes);

/* Joins the ranks that `exchange` connects. It is called twice, by the calling thread, or by a
 * thread of Khoro's in a group; `context` is borrowed until then. It is trusted as an id is, since
 * the key that rank 0 draws goes through it; time inside it counts against no deadline. Else as
 * khoroCommInitRankConfig. Results: also what `exchange` returned. */
KHORO_API khoroResult_t khoroCommInitOver(khoroComm_t* comm, int nranks, int rank,
                                          khoroAllGatherFn exchange, void* context,
                                          const khoroConfig_t* config);

/* Makes a communicator of all ranks that name the same color (0 or more), in the order of (key,
 * rank in comm); KHORO_SPLIT_NOCOLOR takes part and gets NULL. `config` NULL: as comm was made. The
 * new communicator is the caller's, and does not need comm, which may be destroyed first.
 * Collective over comm, thread-bound; blocks until all ranks of comm have called it, and those of
 * the color have met. If it does not block, comm is in progress until they have, and aborting or
 * destroying the new one before that aborts comm. A group may hold one split of each communicator.
 * Results: as khoroCommInitRankConfig, and those of a collective on comm; khoroRemoteError, naming
 * the rank of comm that could not take part. */
#define KHORO_SPLIT_NOCOLOR -1
KHORO_API khoroResult_t khoroCommSplit(khoroComm_t comm, int color, int key, khoroComm_t* newcomm,
                                       const khoroConfig_t* config);

/* Makes `n` ranks in this process, connected directly, and writes rank r to comms[r]. Each is then
 * used by a thread of its own, or by one thread through groups; the caller owns and destroys them
 * all. Local, thread-safe; waits for nobody. Results: khoroSuccess, khoroInvalidArgument,
 * khoroSystemError, khoroOutOfMemory. */
KHORO_API khoroResult_t khoroCommInitAllHost(khoroComm_t* comms, int n);

/* Ends this rank's calls: it takes no more, and peers that still need this rank are told that it
 * has left. Local, thread-bound; calls that are queued on streams are waited for, as by
 * khoroCommDestroy. Results: khoroSuccess, khoroInvalidArgument, khoroInvalidUsage (twice), and the
 * first cause of a poisoned communicator. */
KHORO_API khoroResult_t khoroCommFinalize(khoroComm_t comm);

/* Ends this rank's membership and frees it. Local, thread-bound; calls under way on it must have
 * returned. Calls that are queued on streams are waited for, at most for the deadline, which then
 * fails them; abort ends them at once. Blocks no longer than that, and than peers need to see the
 * end of the last call. A second destroy is khoroInvalidArgument.
 * Results: khoroSuccess, khoroInvalidArgument, khoroInvalidUsage (another thread is in a call). */
KHORO_API khoroResult_t khoroCommDestroy(khoroComm_t comm);

/* Frees every thread, here and on the other ranks, that waits in this communicator: their calls
 * return khoroAborted, and so fail those queued on streams. Local, thread-safe; returns within 1 s.
 * The handle stays valid until destroyed. Results: khoroSuccess, khoroInvalidArgument. */
KHORO_API khoroResult_t khoroCommAbort(khoroComm_t comm);

/* As khoroCommAbort, but calls, pending and later, return khoroRevoked on every rank: for a job
 * that goes on without this communicator. `flags` is KHORO_REVOKE_DEFAULT. Results: khoroSuccess,
 * khoroInvalidArgument, khoroInvalidUsage while it is being made. */
#define KHORO_REVOKE_DEFAULT 0
KHORO_API khoroResult_t khoroCommRevoke(khoroComm_t comm, int flags);

/* The first cause that poisoned the communicator, or why it could not be made; khoroInProgress
 * while it is being made, or a split of it that does not block needs it; else khoroSuccess. It is
 * also how a rank hears within 2 s that ranks made different calls although its own call had
 * succeeded, because its part needed nothing from the others. Local, thread-safe, never blocks.
 * Results: khoroSuccess, khoroInvalidArgument; what is asked for is written to `error`. */
KHORO_API khoroResult_t khoroCommGetAsyncError(khoroComm_t comm, khoroResult_t* error);

/* How many ranks the communicator has, and which of them, from 0, this one is. Local, thread-safe,
 * never block; a poisoned communicator answers too. Results: khoroSuccess, khoroInvalidArgument,
 * khoroInvalidUsage while it is being made, and why it could not be made. */
KHORO_API khoroResult_t khoroCommCount(khoroComm_t comm, int* count);
KHORO_API khoroResult_t khoroCommUserRank(khoroComm_t comm, int* rank);

/* What a communicator has done and holds on this rank. Start from KHORO_STATISTICS_INITIALIZER. */
typedef struct {
  size_t size;          /* for the initializer alone */
  uint64_t collectives; /* begun; a split counts as two */
  uint64_t bytesHeld;   /* of memory that this rank owns for it; a page counts once it is used */
  uint64_t bytesSent;   /* by hosts for other ranks, with headers; not what they read where it is */
  char transports[64];  /* in use: "shm", "tcp" */
  uint64_t stripes;     /* sockets to each other rank; 0 where no message goes over sockets */
  uint64_t stripeBytes[16]; /* of bytesSent, what went over stripe 0, 1, ... to all ranks */
  /* What bytesHeld is made of: the records of calls that other ranks read, the slots of channels,
   * partial results, messages with tags that are kept until they are received, and plans as GPUs
   * run them. Memory of GPUs is among them, but not what drivers take for themselves. */
  uint64_t recordBytes;
  uint64_t channelBytes;
  uint64_t partialBytes;
  uint64_t keptBytes;
  uint64_t programBytes;
} khoroStatistics_t;
#define KHORO_STATISTICS_INITIALIZER \
  { sizeof(khoroStatistics_t), 0, 0, 0, "", 0, {0}, 0, 0, 0, 0, 0 }

/* Local, thread-safe; calls of the communicator do not wait for it. Results: khoroSuccess,
 * khoroInvalidArgument, khoroInvalidUsage while it is being made. */
KHORO_API khoroResult_t khoroCommQuery(khoroComm_t comm, khoroStatistics_t* statistics);

/* Operations that begin after this call end within `milliseconds` (1 .. 2^40); the default is 10
 * minutes. Local, thread-safe. Results: khoroSuccess, khoroInvalidArgument, khoroInvalidUsage while
 * it is being made and once it was finalized, and the first cause of a poisoned communicator. */
KHORO_API khoroResult_t khoroCommSetDeadline(khoroComm_t comm, int64_t milliseconds);

/* The collectives. All are collective, thread-bound, and block when `stream` is NULL outside a
 * group; in a group they start and finish at khoroGroupEnd. On a stream the call returns when it is
 * queued. Calls of one communicator run in the order in which they were made, whatever the stream;
 * one that blocks waits for those that are queued, within its deadline. The deadline of a queued
 * call counts from when it begins. Counts are in elements; count 0, on all ranks, is legal and
 * ignores the pointers. Buffers are borrowed until the call has finished; inputs are never written
 * unless in place; on error outputs are undefined. Results: khoroSuccess, khoroInvalidArgument,
 * khoroInvalidUsage, khoroTimeout, khoroMismatch, khoroAborted, khoroRevoked, khoroPeerDied,
 * khoroRemoteError, khoroOutOfMemory. */

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

/* As khoroAllReduce, but `root` alone gets the result: recvbuff is ignored, and not written,
 * elsewhere. In place: sendbuff == recvbuff. */
KHORO_API khoroResult_t khoroReduce(const void* sendbuff, void* recvbuff, size_t count,
                                    khoroDataType_t datatype, khoroRedOp_t op, int root,
                                    khoroComm_t comm, khoroStream_t stream);

/* As khoroAllGather, but `root` alone gets the blocks, sendcount elements from each rank: recvbuff
 * is ignored, and not written, elsewhere. In place, on the root: sendbuff == recvbuff +
 * root*sendcount. */
KHORO_API khoroResult_t khoroGather(const void* sendbuff, void* recvbuff, size_t sendcount,
                                    khoroDataType_t datatype, int root, khoroComm_t comm,
                                    khoroStream_t stream);

/* recvbuff[i] = sendbuff[rank*recvcount + i] of `root`; sendbuff is ignored elsewhere. In place, on
 * the root: recvbuff == sendbuff + root*recvcount. */
KHORO_API khoroResult_t khoroScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                                     khoroDataType_t datatype, int root, khoroComm_t comm,
                                     khoroStream_t stream);

/* recvbuff[r*count + i] = sendbuff[rank*count + i] of rank r: every rank has a block of `count`
 * elements for every rank. In place: sendbuff == recvbuff. */
KHORO_API khoroResult_t khoroAlltoAll(const void* sendbuff, void* recvbuff, size_t count,
                                      khoroDataType_t datatype, khoroComm_t comm,
                                      khoroStream_t stream);

/* The same with blocks that may differ in length, empty ones among them. Counts and displacements
 * are arrays of one entry per rank, in elements; they are read before the call returns. Blocks may
 * lie anywhere in their buffer, those that are received apart from each other. A rank that gives or
 * gets nothing takes part all the same. */

/* Rank r's sendbuff of recvcounts[r] elements comes to recvbuff + recvdispls[r] on every rank.
 * recvcounts is the same on all ranks, and sendcount its own entry; recvdispls may differ. In
 * place: sendbuff == recvbuff + recvdispls[rank]. */
KHORO_API khoroResult_t khoroAllGatherV(const void* sendbuff, size_t sendcount, void* recvbuff,
                                        const size_t* recvcounts, const size_t* recvdispls,
                                        khoroDataType_t datatype, khoroComm_t comm,
                                        khoroStream_t stream);

/* The reduction over all ranks is dealt out in a row: the first recvcounts[0] elements to rank 0,
 * and so on. recvcounts is the same on all ranks. In place: recvbuff == sendbuff + the sum of the
 * counts before the rank's own. */
KHORO_API khoroResult_t khoroReduceScatterV(const void* sendbuff, void* recvbuff,
                                            const size_t* recvcounts, khoroDataType_t datatype,
                                            khoroRedOp_t op, khoroComm_t comm,
                                            khoroStream_t stream);

/* As khoroAllGatherV, on `root` alone; elsewhere recvbuff, recvcounts and recvdispls are ignored. A
 * rank knows its own count, and the root all. In place, on the root: sendbuff == recvbuff +
 * recvdispls[root]. */
KHORO_API khoroResult_t khoroGatherV(const void* sendbuff, size_t sendcount, void* recvbuff,
                                     const size_t* recvcounts, const size_t* recvdispls,
                                     khoroDataType_t datatype, int root, khoroComm_t comm,
                                     khoroStream_t stream);

/* Rank r gets the sendcounts[r] elements at sendbuff + senddispls[r] of `root`; elsewhere sendbuff,
 * sendcounts and senddispls are ignored. A rank knows its own count, and the root all. In place, on
 * the root: recvbuff == sendbuff + senddispls[root]. */
KHORO_API khoroResult_t khoroScatterV(const void* sendbuff, const size_t* sendcounts,
                                      const size_t* senddispls, void* recvbuff, size_t recvcount,
                                      khoroDataType_t datatype, int root, khoroComm_t comm,
                                      khoroStream_t stream);

/* The sendcounts[r] elements at sendbuff + senddispls[r] come to recvbuff + recvdispls[rank] of
 * rank r, whose recvcounts[rank] is the same. Each rank knows what it sends and gets. In place:
 * sendbuff == recvbuff, with the same counts and displacements both ways. */
KHORO_API khoroResult_t khoroAlltoAllV(const void* sendbuff, const size_t* sendcounts,
                                       const size_t* senddispls, void* recvbuff,
                                       const size_t* recvcounts, const size_t* recvdispls,
                                       khoroDataType_t datatype, khoroComm_t comm,
                                       khoroStream_t stream);

/* Returns after every rank has called it. */
KHORO_API khoroResult_t khoroBarrier(khoroComm_t comm, khoroStream_t stream);

/* Point to point: the k-th send to a peer meets the k-th receive from it; both ends name the same
 * count and type. Not collective; thread-bound. Alone and without a stream they block, but a send
 * may return before its receiver has come, when the data fits in buffers. Groups, streams, counts
 * and the borrowing of buffers are as for the collectives. To oneself: only within a group that
 * holds both. Results: as of the collectives; khoroInvalidUsage also for one to oneself alone. */
KHORO_API khoroResult_t khoroSend(const void* sendbuff, size_t count, khoroDataType_t datatype,
                                  int peer, khoroComm_t comm, khoroStream_t stream);
KHORO_API khoroResult_t khoroRecv(void* recvbuff, size_t count, khoroDataType_t datatype, int peer,
                                  khoroComm_t comm, khoroStream_t stream);

/* The same with a tag: the k-th send with a tag to a peer meets the k-th receive with that tag from
 * it, whatever is sent with other tags in between. Tag 0 is that of the plain calls. While a rank
 * waits in a send to or a receive from a peer, it keeps what that peer sends with other tags than 0
 * until it is received, up to KHORO_TAG_BUFFER bytes of each peer. A receive of what comes after
 * more than that, and a send that finds no room, can end in a cycle, which is khoroMismatch. Plain
 * messages are not kept: two ranks are a cycle too if one is in a plain send that finds no room, as
 * the first one to a rank does not, while the other waits for a message with a tag. Sends with tags
 * to one peer end in the order of the calls, in a group too; receives with different tags need not.
 */
KHORO_API khoroResult_t khoroSendTag(const void* sendbuff, size_t count, khoroDataType_t datatype,
                                     int peer, uint32_t tag, khoroComm_t comm,
                                     khoroStream_t stream);
KHORO_API khoroResult_t khoroRecvTag(void* recvbuff, size_t count, khoroDataType_t datatype,
                                     int peer, uint32_t tag, khoroComm_t comm,
                                     khoroStream_t stream);

/* What this thread calls between the two starts and finishes at the end of the outermost group,
 * which drives all communicators of the thread together. Thread-safe: each thread has groups of its
 * own. Collectives of one communicator run in the order of their calls; sends and receives progress
 * beside them and beside each other, in order per peer. Arguments are checked at the call; what
 * else fails, fails khoroGroupEnd. Calls on streams are queued at the group's end, as one step of
 * each stream per communicator; the steps of several communicators run beside each other.
 * khoroGroupEnd does not wait for a communicator that has all its calls on streams. Results of
 * khoroGroupStart: khoroSuccess; of khoroGroupEnd: those of the calls in it, and khoroInvalidUsage
 * without a start. */
KHORO_API khoroResult_t khoroGroupStart(void);
KHORO_API khoroResult_t khoroGroupEnd(void);

/* Plans: calls that a program makes again and again with the same arguments. Between
 * khoroGroupStart and khoroPlanCreate, which takes the place of khoroGroupEnd, the calls are
 * written down and not made. */

/* Keeps the calls of this thread's open group and closes it. The caller owns the plan and destroys
 * it; it borrows the calls' buffers until then, and is good as long as their communicators and
 * streams are. Local. If it fails, the group is open as before. Results: khoroSuccess,
 * khoroInvalidArgument, khoroInvalidUsage (no group or one within another, a group without calls or
 * one that makes communicators), khoroOutOfMemory. */
KHORO_API khoroResult_t khoroPlanCreate(khoroPlan_t* plan);

/* Makes the calls of the plan, as the end of their group would; in an open group they join it.
 * Those that name no stream are on `stream`, or block if that is NULL too. As collective and as
 * thread-bound as its calls. Results: those of its calls, and khoroInvalidArgument. */
KHORO_API khoroResult_t khoroPlanLaunch(khoroPlan_t plan, khoroStream_t stream);

/* Frees the plan; calls that were launched go on. Local, thread-safe. Results: khoroSuccess,
 * khoroInvalidArgument. */
KHORO_API khoroResult_t khoroPlanDestroy(khoroPlan_t plan);

/* Streams and events. One thread of Khoro's works for all streams of the process, while there are
 * streams or events, and never waits for one stream when another can go on. All functions are
 * thread-safe and local; where several threads use one stream, the order of their calls is its
 * order. A stream or event that is NULL, stale or invented is khoroInvalidArgument. Between
 * khoroGroupStart and khoroGroupEnd a stream that a call of the group is on is khoroInvalidUsage:
 * the call has not begun. */

/* Makes a stream; the caller owns it and destroys it. The first stream or event of a process starts
 * Khoro's thread. Results: khoroSuccess, khoroInvalidArgument, khoroSystemError, khoroOutOfMemory.
 */
KHORO_API khoroResult_t khoroStreamCreate(khoroStream_t* stream);

/* Blocks until what is queued on the stream has ended, well or not, and frees it. The last stream
 * or event of a process that is destroyed ends Khoro's thread. Results: khoroSuccess,
 * khoroInvalidArgument, khoroInvalidUsage. */
KHORO_API khoroResult_t khoroStreamDestroy(khoroStream_t stream);

/* Blocks until what was queued on the stream before has ended. Each operation has its own deadline.
 * Results: khoroSuccess, khoroInvalidArgument, khoroInvalidUsage, and the first error that any
 * operation of this stream has ended with: the stream keeps it, and goes on all the same. */
KHORO_API khoroResult_t khoroStreamSynchronize(khoroStream_t stream);

/* The same without waiting. Results: as khoroStreamSynchronize; khoroInProgress while something is
 * queued. */
KHORO_API khoroResult_t khoroStreamQuery(khoroStream_t stream);

/* Has what is queued on `stream` from now on wait until `event`, as it is recorded now, is
 * complete; on success or not. It waits for nothing if the event was never recorded. Does not
 * block. An event must be recorded before it is waited for, so no circle can be made. Results:
 * khoroSuccess, khoroInvalidArgument, khoroInvalidUsage, khoroOutOfMemory. */
KHORO_API khoroResult_t khoroStreamWaitEvent(khoroStream_t stream, khoroEvent_t event);

/* Makes an event; the caller owns it and destroys it. It counts as complete, with khoroSuccess,
 * until it is recorded. Results: as khoroStreamCreate. */
KHORO_API khoroResult_t khoroEventCreate(khoroEvent_t* event);

/* Frees the event at once. Streams and threads that wait for it wait on, callbacks are still
 * called, and its descriptor is closed. Results: khoroSuccess, khoroInvalidArgument. */
KHORO_API khoroResult_t khoroEventDestroy(khoroEvent_t event);

/* Records the event on the stream: it is complete when what was queued before has ended, and
 * carries the result of the operation before it; of several since the last event of the stream, the
 * first error. Recorded again it stands for the new place alone; who waits for the old one already
 * waits for that. Does not block. Results: khoroSuccess, khoroInvalidArgument, khoroInvalidUsage,
 * khoroOutOfMemory. */
KHORO_API khoroResult_t khoroEventRecord(khoroEvent_t event, khoroStream_t stream);

/* Results: khoroInProgress until the event is complete, then what it carries: khoroSuccess, or why
 * an operation failed, with the words of that; khoroInvalidArgument. Does not block. */
KHORO_API khoroResult_t khoroEventQuery(khoroEvent_t event);

/* Blocks until the event, as it is recorded now, is complete, at most for `milliseconds`; for ever
 * if they are negative. Results: as khoroEventQuery; khoroInProgress if the time was over first. */
KHORO_API khoroResult_t khoroEventWait(khoroEvent_t event, int64_t milliseconds);

/* A descriptor for poll and its like, readable while the event is complete. It belongs to the
 * event: do not read, write or close it. Always the same one; it follows when the event is recorded
 * again. Results: khoroSuccess, khoroInvalidArgument, khoroSystemError. */
KHORO_API khoroResult_t khoroEventDescriptor(khoroEvent_t event, int* fd);

/* Has `callback` called once, by Khoro's thread, when the event, as it is recorded now, is
 * complete: soon if it is already; `context` is borrowed until then. `result` is what it carries,
 * and khoroGetLastError has the words. All streams wait for the callback, so it must be short; it
 * must not call Khoro except khoroGetErrorString and khoroGetLastError: other calls return
 * khoroInvalidUsage. Results: khoroSuccess, khoroInvalidArgument, khoroOutOfMemory. */
typedef void (*khoroEventFn)(void* context, khoroResult_t result);
KHORO_API khoroResult_t khoroEventCallback(khoroEvent_t event, khoroEventFn callback,
                                           void* context);

/* Has `callback` called by this thread while it waits long in calls on communicators, five times a
 * second, for it to see whether something else wants the thread more, such as a signal that a
 * language takes when it can. If it returns other than 0 the communicator is aborted, as by
 * khoroCommAbort, and the call returns khoroAborted. `context` is borrowed until another callback,
 * or NULL for none, is set. It must not call Khoro except khoroGetErrorString and
 * khoroGetLastError: other calls return khoroInvalidUsage. What makes communicators does not call
 * it, but need not block, nor does what waits for streams and events, which can be asked. Each
 * thread has its own. Local. Results: khoroSuccess. */
typedef int (*khoroWaitFn)(void* context);
KHORO_API khoroResult_t khoroSetWaitCallback(khoroWaitFn callback, void* context);

/* Log lines go to `sink` (level: 1 error, 2 warning, 3 info, 4 trace) instead of standard error,
 * from any thread; NULL means standard error again. A line has no newline, and is borrowed by the
 * sink, which must not call Khoro. Local, thread-safe; when it has returned the sink before is not
 * called any more, so its context may be freed. Results: khoroSuccess. */
typedef void (*khoroLogCallback)(void* context, int level, const char* line);
KHORO_API khoroResult_t khoroSetLogCallback(khoroLogCallback sink, void* context);

/* From now on appends when each call of the ranks of this process begins and ends to a file, in
 * Chrome's JSON array format without its last bracket: chrome://tracing and Perfetto show it. NULL
 * ends that; so calls can be looked at while a program runs, by calling this on every rank that is
 * to be shown. Ranks of one machine may share a file, and their times are one clock's. The setting
 * KHORO_TRACE names a file from the start, which rank 0 empties; then messages are shown as arrows
 * between ranks too, as they are for all communicators that are made while there is a file. The
 * library writes twice a second, and when a communicator fails or ends. Thread-safe. Results:
 * khoroSuccess, khoroInvalidArgument (the file cannot be written). */
KHORO_API khoroResult_t khoroSetTraceFile(const char* path);

#ifdef __cplusplus
}
#endif

#include "khoro/device.h"
#include "khoro/memory.h"
#include "khoro/reductions.h"

#endif
