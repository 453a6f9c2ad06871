/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions by a function of the caller's. */
#include "types.h"

enum { long_count = 40000 };

/* Matrices of 2 x 2 modulo 251, a row after the other: their product does not commute. */
static void multiply(void* context, const void* in, void* inout, size_t count,
                     khoroDataType_t type) {
  const uint32_t* right = in;
  uint32_t* left = inout;
  CHECK(type == khoroUint32 && *(const int*)context == 251);
  for (size_t i = 0; i < count; ++i) {
    const uint32_t a = left[i], b = right[i];
    const uint32_t a0 = a & 255, a1 = a >> 8 & 255, a2 = a >> 16 & 255, a3 = a >> 24;
    const uint32_t b0 = b & 255, b1 = b >> 8 & 255, b2 = b >> 16 & 255, b3 = b >> 24;
    left[i] = (a0 * b0 + a1 * b2) % 251 | (a0 * b1 + a1 * b3) % 251 << 8 |
              (a2 * b0 + a3 * b2) % 251 << 16 | (a2 * b1 + a3 * b3) % 251 << 24;
  }
}

static uint32_t matrix_of(int rank, size_t i) {
  uint32_t bits = 0;
  for (int k = 0; k < 4; ++k)
    bits |= (uint32_t)((i * 7 + (size_t)rank * 31 + (size_t)k * 57 + 1) % 251) << 8 * k;
  return bits;
}

static void products(khoroComm_t comm, int rank, int ranks) {
  int modulus = 251;
  khoroRedOp_t op;
  OK(khoroRedOpCreateUser(&op, "2x2 modulo 251", multiply, &modulus, 0, comm));
  uint32_t *in = malloc(long_count * 4), *out = malloc(long_count * 4),
           *expected = malloc(long_count * 4);
  CHECK(in && out && expected);
  for (size_t i = 0; i < long_count; ++i) {
    in[i] = matrix_of(rank, i);
    expected[i] = matrix_of(0, i);
    for (int r = 1; r < ranks; ++r) {
      const uint32_t next = matrix_of(r, i);
      multiply(&modulus, &next, &expected[i], 1, khoroUint32);
    }
  }
  const size_t counts[] = {1, 1000, long_count};
  for (int c = 0; c < 3; ++c) {
    const size_t count = counts[c], block = count / (size_t)ranks;
    OK(khoroAllReduce(in, out, count, khoroUint32, op, comm, NULL));
    CHECK(!memcmp(out, expected, count * 4));
    OK(khoroReduce(in, out, count, khoroUint32, op, 0, comm, NULL));
    if (rank == 0) CHECK(!memcmp(out, expected, count * 4));
    OK(khoroReduceScatter(in, out, block, khoroUint32, op, comm, NULL));
    CHECK(!memcmp(out, expected + (size_t)rank * block, block * 4));
  }
  khoroStream_t stream;
  OK(khoroStreamCreate(&stream));
  memset(out, 0, long_count * 4);
  OK(khoroAllReduce(in, out, long_count, khoroUint32, op, comm, stream));
  OK(khoroStreamSynchronize(stream));
  CHECK(!memcmp(out, expected, long_count * 4));
  OK(khoroStreamDestroy(stream));
  OK(khoroRedOpDestroy(op, comm));
  free(in), free(out), free(expected);
}

/* The bits of elements of any type, or'ed. */
static void either(void* context, const void* in, void* inout, size_t count, khoroDataType_t type) {
  (void)context;
  size_t bytes = 0;
  for (int t = 0; t < type_count; ++t)
    if (types[t].type == type) bytes = types[t].bytes;
  for (size_t i = 0; i < count * bytes; ++i) ((char*)inout)[i] |= ((const char*)in)[i];
}

static void every_type(khoroComm_t comm, int rank, int ranks) {
  khoroRedOp_t op;
  OK(khoroRedOpCreateUser(&op, "bits", either, NULL, 1, comm));
  char in[8 * 50], out[8 * 50];
  for (int t = 0; t < type_count; ++t) {
    memset(in, 1 << rank, sizeof in);
    OK(khoroAllReduce(in, out, 50, types[t].type, op, comm, NULL));
    for (size_t i = 0; i < 50 * types[t].bytes; ++i) CHECK(out[i] == (1 << ranks) - 1);
  }
  OK(khoroRedOpDestroy(op, comm));
}

static void call_khoro(void* context, const void* in, void* inout, size_t count,
                       khoroDataType_t type) {
  int number;
  (void)in, (void)inout, (void)count, (void)type;
  if (khoroCommCount(*(khoroComm_t*)context, &number) == khoroInvalidUsage) return;
  abort();
}

static void function_calls_khoro(khoroComm_t comm, int rank, int ranks) {
  khoroRedOp_t op;
  float in = 1, out;
  int number = 0;
  (void)rank;
  OK(khoroRedOpCreateUser(&op, "calls khoro", call_khoro, &comm, 1, comm));
  OK(khoroAllReduce(&in, &out, 1, khoroFloat32, op, comm, NULL));
  OK(khoroCommCount(comm, &number));
  CHECK(number == ranks);
  CHECK_REFUSED(khoroInvalidArgument, "no name",
                khoroRedOpCreateUser(&op, "", either, NULL, 1, comm));
  CHECK_REFUSED(khoroInvalidArgument, "function is NULL",
                khoroRedOpCreateUser(&op, "none", NULL, NULL, 1, comm));
}

/* Two ranks that mean different functions hear of it. */
static void names_differ(khoroComm_t comm, int rank, int ranks) {
  khoroRedOp_t op;
  float in = 1, out;
  (void)ranks;
  OK(khoroRedOpCreateUser(&op, rank == 1 ? "this" : "that", either, NULL, 1, comm));
  CHECK_REFUSED(khoroMismatch, "made with the same name",
                khoroAllReduce(&in, &out, 1, khoroFloat32, op, comm, NULL));
}

static void one_commutes(khoroComm_t comm, int rank, int ranks) {
  khoroRedOp_t op;
  float in = 1, out;
  (void)ranks;
  OK(khoroRedOpCreateUser(&op, "this", either, NULL, rank == 1, comm));
  CHECK_RESULT(khoroMismatch, khoroAllReduce(&in, &out, 1, khoroFloat32, op, comm, NULL));
}

static void out_of_order(khoroComm_t comm, int rank, int ranks) {
  khoroRedOp_t op;
  uint32_t in = 1, out;
  (void)rank, (void)ranks;
  OK(khoroRedOpCreateUser(&op, "ordered", either, NULL, 0, comm));
  CHECK_REFUSED(khoroInvalidArgument, "commutative reductions",
                khoroAllReduce(&in, &out, 1, khoroUint32, op, comm, NULL));
  OK(khoroRedOpCreateUser(&op, "any order", either, NULL, 1, comm));
  OK(khoroAllReduce(&in, &out, 1, khoroUint32, op, comm, NULL));
}

static const char* const algorithms[] = {"one-shot",         "two-shot",    "recursive-doubling",
                                         "halving-doubling", "double-tree", "ring",
                                         "two-way-ring",     "two-level"};

int main(void) {
  run_processes(3, products); /* before this process uses Khoro */
  for (int a = 0; a < 8; ++a) {
    char setting[64];
    snprintf(setting, sizeof setting, "allreduce:%s", algorithms[a]);
    setenv("KHORO_ALGORITHM", setting, 1);
    run_threads(5, every_type);
    if (a > 1) run_threads(3, out_of_order);
  }
  unsetenv("KHORO_ALGORITHM");
  for (int ranks = 1; ranks <= 7; ++ranks) run_threads(ranks, products);
  run_threads(4, every_type);
  run_threads(3, function_calls_khoro);
  run_threads(3, names_differ);
  run_threads(2, one_commutes);
  return 0;
}
