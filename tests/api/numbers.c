/* SPDX-License-Identifier: Apache-2.0 */
/* Every element type with every reduction that applies to it, and what is refused. Four ranks give
 * small numbers that every type holds exactly. */
#include "types.h"

static const khoroRedOp_t ops[] = {khoroSum, khoroProd, khoroMax, khoroMin,
                                   khoroAvg, khoroBand, khoroBor, khoroBxor};
enum { op_count = 8, rank_count = 4, most = 70001 };

/* What the ranks give as element i, by turns: 1 1 1 1, 1 2 1 2, 2 2 2 2. */
static int input(int rank, size_t i) { return i % 3 == 0 ? 1 : i % 3 == 1 ? 1 + rank % 2 : 2; }

static double expected(khoroRedOp_t op, size_t i, int is_integer) {
  static const double sums[] = {4, 6, 8}, products[] = {1, 4, 16}, averages[] = {1, 1.5, 2};
  const int kind = (int)(i % 3);
  switch (op) {
    case khoroSum:
      return sums[kind];
    case khoroProd:
      return products[kind];
    case khoroMax:
      return kind == 0 ? 1 : 2;
    case khoroMin:
      return kind == 2 ? 2 : 1;
    case khoroAvg:
      return is_integer ? (int)averages[kind] : averages[kind];
    case khoroBand:
      return kind == 0 ? 1 : kind == 1 ? 0 : 2;
    case khoroBor:
      return kind == 0 ? 1 : kind == 1 ? 3 : 2;
    case khoroBxor:
      return 0;
  }
  abort();
}

static void check_stored(const char* buffer, const struct type* type, khoroRedOp_t op, size_t first,
                         size_t count) {
  for (size_t i = 0; i < count; ++i) {
    char wanted[8];
    store(wanted, type, 0, expected(op, first + i, type->mantissa_bits == 0));
    if (!memcmp(buffer + i * type->bytes, wanted, type->bytes)) continue;
    fprintf(stderr, "type %d, reduction %d: element %zu is wrong\n", (int)type->type, (int)op, i);
    abort();
  }
}

static void check_pair(khoroComm_t comm, int rank, const struct type* type, khoroRedOp_t op,
                       char* in, char* out) {
  const size_t counts[] = {1, 17, most / rank_count};
  for (int c = 0; c < 3; ++c) {
    const size_t count = counts[c];
    for (size_t i = 0; i < count * rank_count; ++i) store(in, type, i, input(rank, i));
    OK(khoroAllReduce(in, out, count, type->type, op, comm, NULL));
    check_stored(out, type, op, 0, count);
    OK(khoroReduceScatter(in, out, count, type->type, op, comm, NULL));
    check_stored(out, type, op, (size_t)rank * count, count);
  }
}

/* Bytes arrive as they are, whatever they would be as numbers. */
static void check_copies(khoroComm_t comm, int rank, const struct type* type, char* in, char* out) {
  const size_t count = most / rank_count, block = count * type->bytes;
  for (size_t i = 0; i < block; ++i) in[i] = (char)(i * 7 + (size_t)rank);
  OK(khoroAllGather(in, out, count, type->type, comm, NULL));
  for (size_t r = 0; r < rank_count; ++r)
    for (size_t i = 0; i < block; ++i) CHECK(out[r * block + i] == (char)(i * 7 + r));
  OK(khoroBroadcast(in, out, count, type->type, 1, comm, NULL));
  for (size_t i = 0; i < block; ++i) CHECK(out[i] == (char)(i * 7 + 1));
}

static void check_wrapping(khoroComm_t comm) {
  int8_t bytes[2] = {100, -100}, wrapped[2];
  OK(khoroAllReduce(bytes, wrapped, 2, khoroInt8, khoroSum, comm, NULL));
  CHECK(wrapped[0] == -112 && wrapped[1] == 112);
  OK(khoroAllReduce(bytes, wrapped, 2, khoroInt8, khoroAvg, comm, NULL));
  CHECK(wrapped[0] == 100 && wrapped[1] == -100);
  uint64_t large = UINT64_MAX, all = 0;
  OK(khoroAllReduce(&large, &all, 1, khoroUint64, khoroAvg, comm, NULL));
  CHECK(all == UINT64_MAX);
  uint8_t infinity = 0x7c, saturated = 0; /* e5m2 */
  OK(khoroAllReduce(&infinity, &saturated, 1, khoroFloat8e5m2, khoroSum, comm, NULL));
  CHECK(saturated == 0x7b);
}

static void check_refused(khoroComm_t comm, const struct type* type, khoroRedOp_t op, char* in,
                          char* out) {
  CHECK_REFUSED(khoroInvalidArgument, "use an integer type",
                khoroAllReduce(in, out, 4, type->type, op, comm, NULL));
  CHECK_REFUSED(khoroInvalidArgument, "use an integer type",
                khoroReduceScatter(in, out, 1, type->type, op, comm, NULL));
}

static void body(khoroComm_t comm, int rank, int ranks) {
  CHECK(ranks == rank_count);
  char *in = malloc(most * 8), *out = malloc(most * 8);
  CHECK(in && out);
  for (int t = 0; t < type_count; ++t) {
    const struct type* type = &types[t];
    for (int o = 0; o < op_count; ++o) {
      if (type->mantissa_bits > 0 && ops[o] >= khoroBand)
        check_refused(comm, type, ops[o], in, out);
      else
        check_pair(comm, rank, type, ops[o], in, out);
    }
    check_copies(comm, rank, type, in, out);
  }
  check_wrapping(comm);
  free(in), free(out);
}

int main(void) {
  run_threads(rank_count, body);
  return 0;
}
