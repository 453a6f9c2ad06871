/* SPDX-License-Identifier: Apache-2.0 */
/* Every element type, and numbers that it holds exactly. */
#ifndef KHORO_TESTS_TYPES_H
#define KHORO_TESTS_TYPES_H

#include "check.h"

struct type {
  khoroDataType_t type;
  size_t bytes;
  int exponent_bits, mantissa_bits; /* 0, 0: an integer */
};
static const struct type types[] = {
    {khoroFloat16, 2, 5, 10},  {khoroBfloat16, 2, 8, 7},   {khoroFloat32, 4, 8, 23},
    {khoroFloat64, 8, 11, 52}, {khoroFloat8e4m3, 1, 4, 3}, {khoroFloat8e5m2, 1, 5, 2},
    {khoroInt8, 1, 0, 0},      {khoroUint8, 1, 0, 0},      {khoroInt32, 4, 0, 0},
    {khoroUint32, 4, 0, 0},    {khoroInt64, 8, 0, 0},      {khoroUint64, 8, 0, 0},
};
/* The floats come first. */
enum { type_count = 12, float_count = 6 };

/* The bits of a number that is not negative. */
static inline uint64_t encode(const struct type* type, double value) {
  if (type->mantissa_bits == 0) return (uint64_t)value;
  if (value == 0) return 0;
  int exponent = 0;
  while (value >= 2) value /= 2, ++exponent;
  while (value < 1) value *= 2, --exponent;
  const uint64_t bias = ((uint64_t)1 << (type->exponent_bits - 1)) - 1;
  const double mantissa = (value - 1) * (double)((uint64_t)1 << type->mantissa_bits);
  return ((uint64_t)exponent + bias) << type->mantissa_bits | (uint64_t)mantissa;
}

/* Little-endian. */
static inline void store(void* buffer, const struct type* type, size_t i, double value) {
  const uint64_t bits = encode(type, value);
  memcpy((char*)buffer + i * type->bytes, &bits, type->bytes);
}

static inline void fill(void* buffer, const struct type* type, size_t count, double value) {
  for (size_t i = 0; i < count; ++i) store(buffer, type, i, value);
}

static inline void check_all(const void* buffer, const struct type* type, size_t count,
                             double value) {
  const uint64_t bits = encode(type, value);
  for (size_t i = 0; i < count; ++i) {
    if (!memcmp((const char*)buffer + i * type->bytes, &bits, type->bytes)) continue;
    fprintf(stderr, "type %d: element %zu of %zu is not %g\n", (int)type->type, i, count, value);
    abort();
  }
}

#endif
