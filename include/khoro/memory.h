/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that other ranks may read and write where it lies. Included by khoro.h, whose words it
 * uses. */
#ifndef KHORO_MEMORY_H
#define KHORO_MEMORY_H

#include "khoro/khoro.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Allocates `bytes` of memory, zeroed, at an address of whole pages, for any use. Ranks of other
 * processes of this machine read from it in place what calls send, which saves a copy, in every
 * communicator of this process whenever it is made; nothing needs to be registered. Pages are there
 * once they are touched, near the processor that touches them, and are huge ones in pieces of 2 MiB
 * or more, where the system gives them to shared memory. The process can have as much as the
 * machine has memory, at most 256 GiB, and less where its addresses are limited. A child that was
 * forked sees the same memory, not a copy. The caller owns the memory and frees it with
 * khoroMemFree. Local, thread-safe. Results: khoroSuccess, khoroInvalidArgument (NULL, or 0 bytes),
 * khoroOutOfMemory. */
KHORO_API khoroResult_t khoroMemAlloc(void** pointer, size_t bytes);

/* Frees what khoroMemAlloc wrote; its pages are the system's again at once. No call may be using
 * it, here or on a stream; NULL frees nothing. Local, thread-safe. Results: khoroSuccess,
 * khoroInvalidArgument (it is nothing that was allocated, or was freed), khoroInvalidUsage (a part
 * of it is registered). */
KHORO_API khoroResult_t khoroMemFree(void* pointer);

/* Tells the communicator that calls will use `bytes` at `buffer` again and again, for transports
 * that must prepare memory. Those on host memory need not: what khoroMemAlloc allocated is shared
 * without it, and calls are no faster for it on any other memory. Any memory that is mapped may be
 * registered, parts of it several times. It stays where it is until every registration has ended:
 * the caller does not unmap it, and khoroMemFree refuses it. `handle` is for khoroCommDeregister;
 * the registration ends with `comm` at latest. Local, thread-safe. Results: khoroSuccess,
 * khoroInvalidArgument (NULL, 0 bytes, or not all of it is mapped), khoroInvalidUsage (comm is
 * being made, or finalized), khoroOutOfMemory, and the first cause of a poisoned communicator. */
KHORO_API khoroResult_t khoroCommRegister(khoroComm_t comm, void* buffer, size_t bytes,
                                          void** handle);

/* Ends a registration. No call may be using the memory. Local, thread-safe. Results: khoroSuccess,
 * khoroInvalidArgument (`handle` is none of this communicator's, or was deregistered),
 * khoroInvalidUsage while comm is being made. */
KHORO_API khoroResult_t khoroCommDeregister(khoroComm_t comm, void* handle);

#ifdef __cplusplus
}
#endif

#endif
