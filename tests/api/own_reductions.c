/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions that a caller makes: sums of scaled contributions, and functions. */
#include "check.h"

/* The bits of a small number, exact in every type, as an element of it. */
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
enum { type_count = 12, float_count = 6, long_count = 40000 };

static uint64_t encode(const struct type* type, double value) {
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
static void fill(char* buffer, const struct type* type, size_t count, double value) {
  const uint64_t bits = encode(type, value);
  for (size_t i = 0; i < count; ++i) memcpy(buffer + i * type->bytes, &bits, type->bytes);
}

static void check_all(const char* buffer, const struct type* type, size_t count, double value) {
  const uint64_t bits = encode(type, value);
  for (size_t i = 0; i < count; ++i) CHECK(!memcmp(buffer + i * type->bytes, &bits, type->bytes));
}

static khoroRedOp_t make_sum(khoroComm_t comm, const struct type* type, void* scalar,
                             khoroScalarResidence_t residence) {
  khoroRedOp_t op = khoroSum;
  OK(khoroRedOpCreatePreMulSum(&op, scalar, type->type, residence, comm));
  CHECK(op != khoroSum);
  return op;
}

/* Two ranks give 1 and 2; the factor is the same on both. */
static void sums_of_two(khoroComm_t comm, int rank, int ranks) {
  static const double factors[] = {0.5, 3, 2, 4};
  const size_t counts[] = {1, 8, long_count};
  char *in = malloc(long_count * 8), *out = malloc(long_count * 8);
  CHECK(in && out && ranks == 2);
  for (int t = 0; t < type_count; ++t)
    for (int f = t < float_count ? 0 : 1; f < 4; ++f)
      for (int c = 0; c < 3; ++c) {
        const struct type* type = &types[t];
        const size_t count = counts[c];
        uint64_t scalar = encode(type, factors[f]);
        const khoroRedOp_t now = make_sum(comm, type, &scalar, khoroScalarHostImmediate);
        const khoroRedOp_t later = make_sum(comm, type, &scalar, khoroScalarDevice);
        scalar = encode(type, 1); /* the first has read it, the second has not */
        fill(in, type, count, rank + 1);
        OK(khoroAllReduce(in, out, count, type->type, now, comm, NULL));
        check_all(out, type, count, 3 * factors[f]);
        OK(khoroAllReduce(in, out, count, type->type, later, comm, NULL));
        check_all(out, type, count, 3);
        OK(khoroReduce(in, out, count, type->type, now, 1, comm, NULL));
        if (rank == 1) check_all(out, type, count, 3 * factors[f]);
        const size_t block = count / 2, blocks[] = {block, count - block};
        OK(khoroReduceScatter(in, out, block, type->type, now, comm, NULL));
        check_all(out, type, block, 3 * factors[f]);
        OK(khoroReduceScatterV(in, out, blocks, type->type, now, comm, NULL));
        check_all(out, type, blocks[rank], 3 * factors[f]);
        OK(khoroAllReduce(in, in, count, type->type, now, comm, NULL));
        check_all(in, type, count, 3 * factors[f]);
        OK(khoroRedOpDestroy(now, comm));
        OK(khoroRedOpDestroy(later, comm));
      }
  free(in), free(out);
}

/* Each rank has its own factor, and so has one that is alone. */
static void factors_of_ranks(khoroComm_t comm, int rank, int ranks) {
  float factor = (float)(rank + 1), in[100], out[100];
  const struct type* type = &types[2];
  const khoroRedOp_t op = make_sum(comm, type, &factor, khoroScalarHostImmediate);
  fill((char*)in, type, 100, 2);
  OK(khoroAllReduce(in, out, 100, khoroFloat32, op, comm, NULL));
  check_all((char*)out, type, 100, ranks * (ranks + 1));
  /* Two of one type have two factors, one call after the other, also in a group. */
  float twice = 2;
  const khoroRedOp_t other = make_sum(comm, type, &twice, khoroScalarHostImmediate);
  OK(khoroAllReduce(in, out, 100, khoroFloat32, other, comm, NULL));
  check_all((char*)out, type, 100, 4 * ranks);
  float first[100];
  OK(khoroGroupStart());
  OK(khoroAllReduce(in, first, 100, khoroFloat32, op, comm, NULL));
  OK(khoroAllReduce(in, out, 100, khoroFloat32, other, comm, NULL));
  OK(khoroRedOpDestroy(other, comm)); /* the group still uses it */
  OK(khoroGroupEnd());
  check_all((char*)first, type, 100, ranks * (ranks + 1));
  check_all((char*)out, type, 100, 4 * ranks);
  khoroStream_t stream;
  OK(khoroStreamCreate(&stream));
  OK(khoroAllReduce(in, out, 100, khoroFloat32, op, comm, stream));
  OK(khoroRedOpDestroy(op, comm)); /* and so does the stream */
  OK(khoroStreamSynchronize(stream));
  check_all((char*)out, type, 100, ranks * (ranks + 1));
  OK(khoroStreamDestroy(stream));
}

static void integers_wrap(khoroComm_t comm, int rank, int ranks) {
  const struct type* type = &types[6];
  int8_t factor = 3, in[2] = {50, -100}, out[2];
  (void)rank;
  CHECK(ranks == 2);
  const khoroRedOp_t op = make_sum(comm, type, &factor, khoroScalarHostImmediate);
  OK(khoroAllReduce(in, out, 2, khoroInt8, op, comm, NULL));
  CHECK(out[0] == 44 && out[1] == -88); /* 300 and -600 */
  OK(khoroRedOpDestroy(op, comm));
}

static void refusals(khoroComm_t comm, int rank, int ranks) {
  (void)rank, (void)ranks;
  float in[4] = {1, 2, 3, 4}, out[4], factor = 2;
  double wide[4] = {0};
  khoroRedOp_t op = khoroSum, none;
  OK(khoroRedOpCreatePreMulSum(&op, &factor, khoroFloat32, khoroScalarHostImmediate, comm));
  CHECK_REFUSED(khoroInvalidArgument, "of type khoroFloat32",
                khoroAllReduce(wide, wide, 4, khoroFloat64, op, comm, NULL));
  OK(khoroAllReduce(in, out, 4, khoroFloat32, op, comm, NULL));
  CHECK_REFUSED(khoroInvalidArgument, "of type khoroFloat32",
                khoroReduce(wide, wide, 4, khoroFloat64, op, 0, comm, NULL));
  khoroComm_t other;
  OK(khoroCommInitAllHost(&other, 1));
  CHECK_REFUSED(khoroInvalidArgument, "made for this communicator",
                khoroAllReduce(in, out, 4, khoroFloat32, op, other, NULL));
  CHECK_REFUSED(khoroInvalidArgument, "made for this communicator", khoroRedOpDestroy(op, other));
  OK(khoroCommDestroy(other));
  OK(khoroRedOpDestroy(op, comm));
  CHECK_REFUSED(khoroInvalidArgument, "is not destroyed",
                khoroAllReduce(in, out, 4, khoroFloat32, op, comm, NULL));
  CHECK_REFUSED(khoroInvalidArgument, "made for this communicator", khoroRedOpDestroy(op, comm));
  CHECK_REFUSED(khoroInvalidArgument, "khoro.h names", khoroRedOpDestroy(khoroSum, comm));
  /* Numbers that nobody was given. */
  for (unsigned number = 5; number < 70; ++number)
    if (number < khoroBand || number > khoroBxor)
      CHECK_REFUSED(khoroInvalidArgument, "no reduction",
                    khoroAllReduce(in, out, 4, khoroFloat32, (khoroRedOp_t)number, comm, NULL));
  CHECK_REFUSED(khoroInvalidArgument, "scalar is NULL",
                khoroRedOpCreatePreMulSum(&none, NULL, khoroFloat32, khoroScalarDevice, comm));
  CHECK_REFUSED(khoroInvalidArgument, "no data type",
                khoroRedOpCreatePreMulSum(&none, &factor, (khoroDataType_t)77,
                                          khoroScalarHostImmediate, comm));
  CHECK_REFUSED(
      khoroInvalidArgument, "2 is no residence",
      khoroRedOpCreatePreMulSum(&none, &factor, khoroFloat32, (khoroScalarResidence_t)2, comm));
  CHECK_REFUSED(
      khoroInvalidArgument, "op is NULL",
      khoroRedOpCreatePreMulSum(NULL, &factor, khoroFloat32, khoroScalarHostImmediate, comm));
  OK(khoroAllReduce(in, out, 4, khoroFloat32, khoroSum, comm, NULL));
}

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
  const size_t bytes =
      type == khoroInt8 || type == khoroUint8 || type == khoroFloat8e4m3 || type == khoroFloat8e5m2
          ? 1
      : type == khoroFloat16 || type == khoroBfloat16                     ? 2
      : type == khoroInt64 || type == khoroUint64 || type == khoroFloat64 ? 8
                                                                          : 4;
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
                                         "two-way-ring"};

int main(void) {
  run_processes(2, sums_of_two); /* before this process uses Khoro */
  run_processes(3, products);
  run_threads(2, integers_wrap);
  run_threads(2, sums_of_two);
  for (int ranks = 1; ranks <= 5; ++ranks) run_threads(ranks, factors_of_ranks);
  for (int a = 0; a < 7; ++a) {
    char setting[64];
    snprintf(setting, sizeof setting, "allreduce:%s", algorithms[a]);
    setenv("KHORO_ALGORITHM", setting, 1);
    run_threads(2, factors_of_ranks);
    run_threads(5, factors_of_ranks);
    run_threads(5, every_type);
    if (a > 1) run_threads(3, out_of_order);
  }
  unsetenv("KHORO_ALGORITHM");
  for (int ranks = 1; ranks <= 7; ++ranks) run_threads(ranks, products);
  run_threads(4, every_type);
  run_threads(2, refusals);
  run_threads(3, function_calls_khoro);
  run_threads(3, names_differ);
  run_threads(2, one_commutes);
  return 0;
}
