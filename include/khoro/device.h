/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs, real and virtual. Included by khoro.h, whose words it uses.
 *
 * A communicator is on memory of one kind, which all its ranks choose by the setting KHORO_MEMORY:
 * host, cuda or virtual. On GPUs each rank has one (KHORO_DEVICE; else they are dealt out in turn),
 * and buffers of calls are memory that its kernels reach; anything else is khoroInvalidArgument. A
 * call takes a stream of that GPU, which orders it as it orders kernels, and returns once it is
 * queued; stream NULL blocks, as on hosts. Counts and displacements of calls with V are arrays of
 * the host, which the caller has back then. A call with a stream of the host is khoroInvalidUsage,
 * and so are, so far, tags, and reductions that are functions. What fails later is told by
 * khoroCommGetAsyncError, within 2 s, and kernels that wait end. Ranks that are threads of one
 * process may read and write each other's buffers while calls run; who is told of a failure by any
 * function, or has destroyed the communicator, has its own back.
 *
 * Virtual GPUs are threads and memory of the host, for machines that have no other ones:
 * KHORO_VIRTUAL_GPUS says how many a process sees, and KHORO_TOPO_FILE what machine they are in.
 * Host code that touches their memory ends by SIGSEGV, as with real ones. */
#ifndef KHORO_DEVICE_H
#define KHORO_DEVICE_H

#include "khoro/khoro.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where memory lies: KHORO_MEMORY=host, cuda, virtual. */
typedef enum KHORO_ENUM_TYPE {
  khoroMemoryHost = 0,
  khoroMemoryCuda = 1,
  khoroMemoryVirtual = 2
} khoroMemory_t;

/* How many GPUs of a kind the process sees. Local, thread-safe. Results: khoroSuccess,
 * khoroInvalidArgument, khoroInvalidUsage where there is none, with the reason: no driver, one that
 * is too old, a library that was built without CUDA, no virtual GPUs asked for. */
KHORO_API khoroResult_t khoroDeviceCount(khoroMemory_t memory, int* count);

/* Writes "NVIDIA H200 at 0000:1b:00.0", a GPU's name and bus id, to `size` bytes at `text`, cut off
 * where that is too little. Local, thread-safe. Results: as khoroDeviceCount, khoroInvalidArgument
 * where there is no such GPU. */
KHORO_API khoroResult_t khoroDeviceName(char* text, size_t size, khoroMemory_t memory, int device);

/* Makes a rank on each of `n` GPUs, all in this process, and writes rank r to comms[r]: on GPU
 * devices[r], or r if `devices` is NULL; several may be on one. The GPUs are real ones, unless
 * KHORO_MEMORY=virtual. Else as khoroCommInitAllHost. Results: also khoroInvalidUsage as
 * khoroDeviceCount. */
KHORO_API khoroResult_t khoroCommInitAll(khoroComm_t* comms, int n, const int* devices);

/* The kind of a communicator's memory, and its GPU; -1 on hosts. NULL: not asked for. Local,
 * thread-safe. Results: khoroSuccess, khoroInvalidArgument, khoroInvalidUsage while it is made. */
KHORO_API khoroResult_t khoroCommDevice(khoroComm_t comm, khoroMemory_t* memory, int* device);

/* `bytes` of a GPU's memory, zeroed. The caller owns it and frees it with khoroDeviceFree, when no
 * call uses it any more. Calls take memory of other libraries as well; this one all GPUs reach that
 * can, so that ranks of one process need not copy messages in it. Local, thread-safe.
 * Results: khoroSuccess, khoroInvalidArgument (NULL, 0 bytes, no such GPU), khoroInvalidUsage as
 * khoroDeviceCount, khoroOutOfMemory, khoroUnhandledDeviceError. */
KHORO_API khoroResult_t khoroDeviceAlloc(void** pointer, size_t bytes, khoroMemory_t memory,
                                         int device);
/* NULL frees nothing. Blocks while kernels of communicators that have failed still run, which they
 * do not for long. Local, thread-safe. Results: khoroSuccess, khoroInvalidArgument (it is nothing
 * that was allocated, or was freed). */
KHORO_API khoroResult_t khoroDeviceFree(void* pointer);

/* A stream of a GPU, for calls of communicators whose rank has that GPU. khoroStreamSynchronize,
 * khoroStreamQuery and khoroStreamDestroy take it; events of Khoro are for streams of the host. A
 * stream that was made does what it was given before it is destroyed. Local, thread-safe. Results:
 * as khoroDeviceAlloc. */
KHORO_API khoroResult_t khoroDeviceStreamCreate(khoroStream_t* stream, khoroMemory_t memory,
                                                int device);
/* The same of a stream that somebody else has made: `native` is its cudaStream_t or CUstream, NULL
 * the default stream. It stays theirs, and outlives `stream` and what is queued on it. */
KHORO_API khoroResult_t khoroDeviceStreamBorrow(khoroStream_t* stream, khoroMemory_t memory,
                                                int device, void* native);
/* What khoroDeviceStreamBorrow took. Results: khoroSuccess, khoroInvalidArgument. */
KHORO_API khoroResult_t khoroDeviceStreamNative(khoroStream_t stream, void** native);

/* Queues a copy on a stream of a GPU, between memory of that GPU, of others that it reaches, and of
 * the host, in which ranges that are not pinned must stay until it is done. Local, thread-safe.
 * Results: khoroSuccess, khoroInvalidArgument, khoroInvalidUsage (a stream of the host),
 * khoroUnhandledDeviceError. */
KHORO_API khoroResult_t khoroDeviceCopy(void* to, const void* from, size_t bytes,
                                        khoroStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
