/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions that a caller makes, beside those of khoroRedOp_t. Included by khoro.h, whose words it
 * uses. */
#ifndef KHORO_REDUCTIONS_H
#define KHORO_REDUCTIONS_H

#include "khoro/khoro.h"

#ifdef __cplusplus
extern "C" {
#endif

/* When the scalar of a reduction is read. The values are NCCL's. */
typedef enum KHORO_ENUM_TYPE {
  khoroScalarDevice = 0,       /* whenever a call is made that uses it */
  khoroScalarHostImmediate = 1 /* when the reduction is made */
} khoroScalarResidence_t;

/* Makes a reduction that sums what the ranks give, each times its own scalar: `*scalar`, an element
 * of `datatype`, read when `residence` says. It is for calls on `comm` of that type alone; ranks
 * may have different scalars. Products are formed where they are summed: of 16- and 8-bit floats in
 * 32 bits; integers are scaled, then wrap. A scalar that is read later is borrowed until the
 * reduction is destroyed. The caller owns the reduction, whose number is no other's; it ends with
 * `comm` at latest. Local, thread-safe. Results: khoroSuccess, khoroInvalidArgument,
 * khoroInvalidUsage (comm is being made, or finalized), khoroOutOfMemory, and the first cause of a
 * poisoned communicator. */
KHORO_API khoroResult_t khoroRedOpCreatePreMulSum(khoroRedOp_t* op, void* scalar,
                                                  khoroDataType_t datatype,
                                                  khoroScalarResidence_t residence,
                                                  khoroComm_t comm);

/* The caller's own way to reduce: inout[i] = inout[i] op in[i] for `count` elements, which lie as
 * their type must. `in` is not to be written. It is called any number of times for a part of a call
 * each, by the thread that makes the call or, on a stream, by a thread of Khoro's, and must not
 * call Khoro: that is khoroInvalidUsage. */
typedef void (*khoroReduceFn)(void* context, const void* in, void* inout, size_t count,
                              khoroDataType_t datatype);

/* Makes a reduction of a function, for calls on `comm` of any type; partial results are of that
 * type. The function must be associative. Unless `commutative`, contributions are reduced from the
 * left in the order of ranks. `name`, borrowed for the call, is how ranks know that they mean the
 * same function: calls with reductions of different names are khoroMismatch. `context` is borrowed
 * until the reduction is destroyed and the calls that use it have finished. Else as
 * khoroRedOpCreatePreMulSum. */
KHORO_API khoroResult_t khoroRedOpCreateUser(khoroRedOp_t* op, const char* name,
                                             khoroReduceFn function, void* context, int commutative,
                                             khoroComm_t comm);

/* Ends a reduction that was made: its number is khoroInvalidArgument from then on. Calls that are
 * queued with it, on a stream or in a group, still use it. Local, thread-safe. Results:
 * khoroSuccess, khoroInvalidArgument (also of one that was not made for `comm`), khoroInvalidUsage
 * while comm is being made. */
KHORO_API khoroResult_t khoroRedOpDestroy(khoroRedOp_t op, khoroComm_t comm);

#ifdef __cplusplus
}
#endif

#endif
