/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of the common types, and what the collectives must make of them. */
#ifndef KHORO_TESTS_VALUES_H
#define KHORO_TESTS_VALUES_H

#include "guarded.h"

static const khoroDataType_t all_types[] = {khoroInt32, khoroInt64, khoroFloat32, khoroFloat64,
                                            khoroBfloat16};
static const khoroRedOp_t all_ops[] = {khoroSum, khoroMax, khoroMin, khoroAvg};
enum { type_count = 5, op_count = 4 };

static inline size_t size_of(khoroDataType_t type) {
  if (type == khoroInt64 || type == khoroFloat64) return 8;
  return type == khoroBfloat16 ? 2 : 4;
}

static inline void store(void* buffer, khoroDataType_t type, size_t i, double value) {
  switch (type) {
    case khoroInt32:
      ((int32_t*)buffer)[i] = (int32_t)value;
      break;
    case khoroInt64:
      ((int64_t*)buffer)[i] = (int64_t)value;
      break;
    case khoroFloat32:
      ((float*)buffer)[i] = (float)value;
      break;
    case khoroFloat64:
      ((double*)buffer)[i] = value;
      break;
    case khoroBfloat16: {
      const float single = (float)value;
      uint32_t bits;
      memcpy(&bits, &single, 4);
      bits += 0x7fff + (bits >> 16 & 1); /* to nearest even */
      ((uint16_t*)buffer)[i] = (uint16_t)(bits >> 16);
      break;
    }
    default: /* numbers.c has them */
      abort();
  }
}

/* What rank `rank` contributes as element i: small integers, exact in every type. */
static inline double contribution(int rank, size_t i) {
  return (double)((rank * 7 + (long)(i % 1009) * 3) % 11) - 5;
}

static inline void fill(void* buffer, khoroDataType_t type, size_t count, int rank, size_t first) {
  for (size_t i = 0; i < count; ++i) store(buffer, type, i, contribution(rank, first + i));
}

/* Stores the reduction of element i of all ranks as element `at`. */
static inline void store_reduced(void* buffer, khoroDataType_t type, size_t at, int ranks,
                                 khoroRedOp_t op, size_t i) {
  double value = contribution(0, i);
  for (int r = 1; r < ranks; ++r) {
    const double next = contribution(r, i);
    if (op == khoroMax)
      value = next > value ? next : value;
    else if (op == khoroMin)
      value = next < value ? next : value;
    else
      value += next;
  }
  if (op == khoroAvg)
    value = type == khoroInt32 || type == khoroInt64 ? (double)((long)value / ranks)
            : type == khoroFloat64                   ? value / ranks
                                                     : (double)((float)value / (float)ranks);
  store(buffer, type, at, value);
}

static inline void check_equal(const void* got, const void* expected, khoroDataType_t type,
                               size_t count, const char* what) {
  const size_t size = size_of(type);
  for (size_t i = 0; i < count; ++i) {
    if (!memcmp((const char*)got + i * size, (const char*)expected + i * size, size)) continue;
    fprintf(stderr, "%s, type %d: element %zu of %zu is wrong\n", what, (int)type, i, count);
    abort();
  }
}

#endif
