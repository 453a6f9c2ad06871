/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of contributions, each times a factor of its rank's, of every type: by every algorithm, with
 * every way to hold the factor, and of one rank at every count. */
#include "guarded.h"
#include "types.h"

enum { long_count = 40000 };

/* A factor as an element, and behind it bytes that are no part of it. */
struct factor {
  char bytes[16];
};

static void set_factor(struct factor* factor, const struct type* type, double value) {
  memset(factor->bytes, 0xa5, sizeof factor->bytes);
  store(factor->bytes, type, 0, value);
}

static khoroRedOp_t make_sum(khoroComm_t comm, const struct type* type, void* scalar,
                             khoroScalarResidence_t residence) {
  khoroRedOp_t op = khoroSum;
  OK(khoroRedOpCreatePreMulSum(&op, scalar, type->type, residence, comm));
  CHECK(op != khoroSum);
  return op;
}

/* Every call that reduces, of ranks that give 1 and 2. */
static void check_calls(khoroComm_t comm, int rank, const struct type* type, size_t count,
                        khoroRedOp_t op, double expected) {
  const size_t bytes = count * type->bytes, block = count / 2, blocks[] = {block, count - block};
  void *in = guarded(bytes), *out = guarded(bytes);
  fill(in, type, count, rank + 1);
  OK(khoroAllReduce(in, out, count, type->type, op, comm, NULL));
  check_all(out, type, count, expected);
  memset(out, guard_byte, bytes);
  OK(khoroReduce(in, out, count, type->type, op, 1, comm, NULL));
  if (rank == 1) check_all(out, type, count, expected);
  release(out, bytes);
  out = guarded(block * type->bytes);
  OK(khoroReduceScatter(in, out, block, type->type, op, comm, NULL));
  check_all(out, type, block, expected);
  release(out, block * type->bytes);
  out = guarded(blocks[rank] * type->bytes);
  OK(khoroReduceScatterV(in, out, blocks, type->type, op, comm, NULL));
  check_all(out, type, blocks[rank], expected);
  release(out, blocks[rank] * type->bytes);
  OK(khoroAllReduce(in, in, count, type->type, op, comm, NULL));
  check_all(in, type, count, expected);
  release(in, bytes);
}

/* The factor is the same on both ranks. */
static void sums_of_two(khoroComm_t comm, int rank, int ranks) {
  static const double factors[] = {0.5, 3, 2, 4};
  const size_t counts[] = {1, 8, long_count};
  CHECK(ranks == 2);
  for (int t = 0; t < type_count; ++t)
    for (int f = t < float_count ? 0 : 1; f < 4; ++f) {
      const struct type* type = &types[t];
      struct factor factor;
      set_factor(&factor, type, factors[f]);
      const khoroRedOp_t now = make_sum(comm, type, factor.bytes, khoroScalarHostImmediate);
      const khoroRedOp_t later = make_sum(comm, type, factor.bytes, khoroScalarDevice);
      set_factor(&factor, type, 1); /* the first has read it, the second has not */
      for (int c = 0; c < 3; ++c) {
        check_calls(comm, rank, type, counts[c], now, 3 * factors[f]);
        check_calls(comm, rank, type, counts[c], later, 3);
      }
      OK(khoroRedOpDestroy(now, comm));
      OK(khoroRedOpDestroy(later, comm));
    }
}

/* Each rank has its own factor, and so has one that is alone. */
static void factors_of_ranks(khoroComm_t comm, int rank, int ranks) {
  float factor = (float)(rank + 1), in[100], out[100];
  const struct type* type = &types[2];
  const khoroRedOp_t op = make_sum(comm, type, &factor, khoroScalarHostImmediate);
  fill(in, type, 100, 2);
  OK(khoroAllReduce(in, out, 100, khoroFloat32, op, comm, NULL));
  check_all(out, type, 100, ranks * (ranks + 1));
  /* Two of one type have two factors, one call after the other, also in a group. */
  float twice = 2;
  const khoroRedOp_t other = make_sum(comm, type, &twice, khoroScalarHostImmediate);
  OK(khoroAllReduce(in, out, 100, khoroFloat32, other, comm, NULL));
  check_all(out, type, 100, 4 * ranks);
  float first[100];
  OK(khoroGroupStart());
  OK(khoroAllReduce(in, first, 100, khoroFloat32, op, comm, NULL));
  OK(khoroAllReduce(in, out, 100, khoroFloat32, other, comm, NULL));
  OK(khoroRedOpDestroy(other, comm)); /* the group still uses it */
  OK(khoroGroupEnd());
  check_all(first, type, 100, ranks * (ranks + 1));
  check_all(out, type, 100, 4 * ranks);
  khoroStream_t stream;
  OK(khoroStreamCreate(&stream));
  OK(khoroAllReduce(in, out, 100, khoroFloat32, op, comm, stream));
  OK(khoroRedOpDestroy(op, comm)); /* and so does the stream */
  OK(khoroStreamSynchronize(stream));
  check_all(out, type, 100, ranks * (ranks + 1));
  OK(khoroStreamDestroy(stream));
}

/* A call has read its factor when it returns, whenever it is done. */
static void factor_of_a_call(khoroComm_t comm, int rank, int ranks) {
  khoroStream_t stream;
  OK(khoroStreamCreate(&stream));
  for (int t = 0; t < type_count; ++t) {
    const struct type* type = &types[t];
    struct factor factor;
    char in[8 * 8], out[2][8 * 8];
    const khoroRedOp_t op = make_sum(comm, type, factor.bytes, khoroScalarDevice);
    fill(in, type, 8, 1);
    for (int on_stream = 0; on_stream < 2; ++on_stream) {
      if (!on_stream) OK(khoroGroupStart());
      for (int i = 0; i < 2; ++i) {
        set_factor(&factor, type, i + 1);
        OK(khoroAllReduce(in, out[i], 8, type->type, op, comm, on_stream ? stream : NULL));
      }
      set_factor(&factor, type, 5);
      if (!on_stream) OK(khoroGroupEnd());
      OK(khoroStreamSynchronize(stream));
      for (int i = 0; i < 2; ++i) check_all(out[i], type, 8, ranks * (i + 1));
    }
    OK(khoroRedOpDestroy(op, comm));
  }
  OK(khoroStreamDestroy(stream));
  (void)rank;
}

/* What is alone scales what it has, to the last element, and writes nothing else. */
static void one_rank(khoroComm_t comm, int rank, int ranks) {
  enum { most = 4100 };
  CHECK(ranks == 1);
  for (int t = 0; t < type_count; ++t) {
    const struct type* type = &types[t];
    const double by = t < float_count ? 0.5 : 3;
    static char in[most * 8], expected[most * 8];
    struct factor factor;
    set_factor(&factor, type, by);
    const khoroRedOp_t op = make_sum(comm, type, factor.bytes, khoroScalarHostImmediate);
    for (size_t i = 0; i < most; ++i) {
      store(in, type, i, 1 + (double)(i % 3));
      store(expected, type, i, by * (1 + (double)(i % 3)));
    }
    for (size_t count = 1; count <= most; ++count)
      for (int call = 0; call < 3; ++call) {
        void* out = guarded(count * type->bytes);
        if (call == 0) OK(khoroAllReduce(in, out, count, type->type, op, comm, NULL));
        if (call == 1) OK(khoroReduce(in, out, count, type->type, op, 0, comm, NULL));
        if (call == 2) OK(khoroReduceScatter(in, out, count, type->type, op, comm, NULL));
        CHECK(!memcmp(out, expected, count * type->bytes));
        release(out, count * type->bytes);
      }
    OK(khoroRedOpDestroy(op, comm));
  }
  (void)rank;
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

static void check_calls_refused(khoroComm_t comm, khoroDataType_t type, khoroRedOp_t op,
                                const char* words) {
  double in[8] = {0}, out[4] = {0};
  const size_t blocks[] = {1, 1};
  CHECK_REFUSED(khoroInvalidArgument, words, khoroAllReduce(in, out, 4, type, op, comm, NULL));
  CHECK_REFUSED(khoroInvalidArgument, words, khoroReduce(in, out, 4, type, op, 0, comm, NULL));
  CHECK_REFUSED(khoroInvalidArgument, words, khoroReduceScatter(in, out, 4, type, op, comm, NULL));
  CHECK_REFUSED(khoroInvalidArgument, words,
                khoroReduceScatterV(in, out, blocks, type, op, comm, NULL));
  for (int i = 0; i < 4; ++i) CHECK(out[i] == 0);
}

/* Also where another type is as wide. */
static void other_types_are_refused(khoroComm_t comm, int rank, int ranks) {
  CHECK(ranks == 2);
  for (int made = 0; made < type_count; ++made) {
    char bytes[8] = {0};
    const khoroRedOp_t op = make_sum(comm, &types[made], bytes, khoroScalarHostImmediate);
    for (int called = 0; called < type_count; ++called)
      if (called != made) check_calls_refused(comm, types[called].type, op, "of type khoro");
    OK(khoroRedOpDestroy(op, comm));
    check_calls_refused(comm, types[made].type, op, "is not destroyed");
  }
  OK(khoroBarrier(comm, NULL));
  (void)rank;
}

static void refusals(khoroComm_t comm, int rank, int ranks) {
  (void)rank, (void)ranks;
  float in[4] = {1, 2, 3, 4}, out[4], factor = 2;
  const khoroRedOp_t op = make_sum(comm, &types[2], &factor, khoroScalarHostImmediate);
  khoroRedOp_t none;
  khoroComm_t other;
  OK(khoroCommInitAllHost(&other, 1));
  CHECK_REFUSED(khoroInvalidArgument, "made for this communicator",
                khoroAllReduce(in, out, 4, khoroFloat32, op, other, NULL));
  CHECK_REFUSED(khoroInvalidArgument, "made for this communicator", khoroRedOpDestroy(op, other));
  OK(khoroCommDestroy(other));
  OK(khoroRedOpDestroy(op, comm));
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

/* Of reducescatter those that can do unequal blocks. */
static const char* const algorithms[] = {"allreduce:one-shot",
                                         "allreduce:two-shot",
                                         "allreduce:recursive-doubling",
                                         "allreduce:halving-doubling",
                                         "allreduce:double-tree",
                                         "allreduce:ring",
                                         "allreduce:two-way-ring",
                                         "allreduce:two-level",
                                         "reduce:linear",
                                         "reduce:binomial",
                                         "reduce:chain",
                                         "reduce:two-level",
                                         "reducescatter:linear",
                                         "reducescatter:ring",
                                         "reducescatter:two-way-ring"};

int main(void) {
  run_processes(2, sums_of_two); /* before this process uses Khoro */
  run_threads(2, integers_wrap);
  run_threads(1, one_rank);
  run_threads(2, other_types_are_refused);
  run_threads(2, refusals);
  for (int ranks = 1; ranks <= 5; ++ranks) run_threads(ranks, factors_of_ranks);
  for (int ranks = 1; ranks <= 3; ++ranks) run_threads(ranks, factor_of_a_call);
  for (size_t a = 0; a < sizeof algorithms / sizeof *algorithms; ++a) {
    CHECK(setenv("KHORO_ALGORITHM", algorithms[a], 1) == 0);
    run_threads(2, sums_of_two);
    run_threads(2, factors_of_ranks);
    run_threads(5, factors_of_ranks);
  }
  return 0;
}
