/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives of unequal blocks: what is refused, what does not match, and sizes far apart. */
#include "values.h"

static float in[64], out[64];
static const size_t counts[] = {4, 0, 2}, displs[] = {0, 9, 5};
static const size_t overlapping[] = {0, 3, 3};

/* Local: one rank calls, and nothing is poisoned. */
static void check_refusals(khoroComm_t comm, int rank, int ranks) {
  const khoroDataType_t f32 = khoroFloat32;
  if (rank == 0) {
    CHECK_REFUSED(khoroInvalidArgument, "are NULL",
                  khoroAlltoAllV(in, NULL, displs, out, counts, displs, f32, comm, NULL));
    CHECK_REFUSED(khoroInvalidArgument, "are NULL",
                  khoroAlltoAllV(in, counts, displs, out, counts, NULL, f32, comm, NULL));
    CHECK_REFUSED(khoroInvalidArgument, "are NULL",
                  khoroAllGatherV(in, 4, out, NULL, displs, f32, comm, NULL));
    CHECK_REFUSED(khoroInvalidArgument, "are NULL",
                  khoroReduceScatterV(in, out, NULL, f32, khoroSum, comm, NULL));
    CHECK_REFUSED(khoroInvalidArgument, "are NULL",
                  khoroGatherV(in, 4, out, counts, NULL, f32, 0, comm, NULL));
    CHECK_REFUSED(khoroInvalidArgument, "are NULL",
                  khoroScatterV(in, NULL, displs, out, 4, f32, 0, comm, NULL));
    CHECK_REFUSED(khoroInvalidArgument, "overlap at element 3",
                  khoroAllGatherV(in, 4, out, counts, overlapping, f32, comm, NULL));
    CHECK_REFUSED(khoroInvalidArgument, "overlap at element 3",
                  khoroAlltoAllV(in, counts, displs, out, counts, overlapping, f32, comm, NULL));
    CHECK_REFUSED(khoroInvalidArgument, "gives itself 5 elements and takes 4",
                  khoroAllGatherV(in, 5, out, counts, displs, f32, comm, NULL));
    CHECK_REFUSED(khoroInvalidArgument, "gives itself 3 elements and takes 4",
                  khoroGatherV(in, 3, out, counts, displs, f32, 0, comm, NULL));
    CHECK_REFUSED(khoroInvalidArgument, "gives itself 4 elements and takes 1",
                  khoroScatterV(in, counts, displs, out, 1, f32, 0, comm, NULL));
    CHECK_REFUSED(khoroInvalidArgument, "send buffer is NULL",
                  khoroAllGatherV(NULL, 4, out, counts, displs, f32, comm, NULL));
    CHECK_REFUSED(khoroInvalidArgument, "overlap",
                  khoroAllGatherV(out + 1, 4, out, counts, displs, f32, comm, NULL));
    const size_t others[] = {4, 1, 2};
    CHECK_REFUSED(khoroInvalidArgument, "same counts and displacements",
                  khoroAlltoAllV(in, counts, displs, in, others, displs, f32, comm, NULL));
    CHECK_REFUSED(khoroInvalidArgument, "there is no rank 3",
                  khoroGatherV(in, 4, out, counts, displs, f32, 3, comm, NULL));
    CHECK_REFUSED(khoroInvalidArgument, "NULL",
                  khoroAllGatherV(in, 4, out, counts, displs, f32, NULL, NULL));
    const size_t huge[] = {SIZE_MAX, (size_t)1 << 61, (size_t)1 << 62};
    for (int i = 0; i < 3; ++i) {
      const size_t too_many[] = {4, huge[i], 2}, too_far[] = {0, 9, huge[i]};
      CHECK_REFUSED(khoroInvalidArgument, "more than memory can hold",
                    khoroAllGatherV(in, 4, out, too_many, displs, f32, comm, NULL));
      CHECK_REFUSED(khoroInvalidArgument, "more than memory can hold",
                    khoroAllGatherV(in, 4, out, counts, too_far, f32, comm, NULL));
      CHECK_REFUSED(khoroInvalidArgument, "more than memory can hold",
                    khoroReduceScatterV(in, out, too_many, f32, khoroSum, comm, NULL));
      CHECK_REFUSED(khoroInvalidArgument, "more than memory can hold",
                    khoroAlltoAllV(in, too_many, displs, out, counts, displs, f32, comm, NULL));
      CHECK_REFUSED(khoroInvalidArgument, "more than memory can hold",
                    khoroAlltoAllV(in, counts, displs, out, counts, too_far, f32, comm, NULL));
      CHECK_REFUSED(khoroInvalidArgument, "more than memory can hold",
                    khoroGatherV(in, 4, out, too_many, displs, f32, 0, comm, NULL));
      CHECK_REFUSED(khoroInvalidArgument, "more than memory can hold",
                    khoroScatterV(in, counts, too_far, out, 4, f32, 0, comm, NULL));
      CHECK_REFUSED(khoroInvalidArgument, "more than memory can hold",
                    khoroGatherV(in, huge[i], out, counts, displs, f32, 1, comm, NULL));
      CHECK_REFUSED(khoroInvalidArgument, "more than memory can hold",
                    khoroScatterV(in, counts, displs, out, huge[i], f32, 1, comm, NULL));
    }
    for (int i = 0; i < 64; ++i) CHECK(in[i] == 0 && out[i] == 0);
  }
  /* Nothing at all, with nothing for buffers. */
  const size_t none[3] = {0, 0, 0};
  OK(khoroAllGatherV(NULL, 0, NULL, none, none, f32, comm, NULL));
  OK(khoroReduceScatterV(NULL, NULL, none, f32, khoroSum, comm, NULL));
  OK(khoroAlltoAllV(NULL, none, none, NULL, none, none, f32, comm, NULL));
  OK(khoroGatherV(NULL, 0, NULL, none, none, f32, 1, comm, NULL));
  OK(khoroScatterV(NULL, none, none, NULL, 0, f32, 2, comm, NULL));
  OK(khoroBarrier(comm, NULL));
  (void)ranks;
}

/* One block is far longer than what a rank's other channels pass. */
static void check_one_long_block(khoroComm_t comm, int rank, int ranks) {
  const size_t many = 3000017;
  size_t gives[3], from[3], gets[3], to[3];
  for (int giver = 0; giver < ranks; ++giver) {
    const int taker = (giver + 1) % ranks;
    for (int r = 0; r < ranks; ++r) {
      gives[r] = rank == giver && r == taker ? many : 1;
      gets[r] = rank == taker && r == giver ? many : 1;
      from[r] = r == 0 ? 0 : from[r - 1] + gives[r - 1];
      to[r] = r == 0 ? 0 : to[r - 1] + gets[r - 1];
    }
    const size_t in_all = from[2] + gives[2], out_all = to[2] + gets[2];
    int32_t *data = guarded(4 * in_all), *got = guarded(4 * out_all);
    for (int r = 0; r < ranks; ++r)
      for (size_t i = 0; i < gives[r]; ++i) data[from[r] + i] = (int32_t)(i * 7) + 16 * rank + r;
    OK(khoroAlltoAllV(data, gives, from, got, gets, to, khoroInt32, comm, NULL));
    for (int r = 0; r < ranks; ++r)
      for (size_t i = 0; i < gets[r]; ++i)
        CHECK(got[to[r] + i] == (int32_t)(i * 7) + 16 * r + rank);
    release(data, 4 * in_all), release(got, 4 * out_all);
  }
}

/* In a group and on a stream the arrays are the caller's again when the call has returned. */
static void check_arrays_are_read_at_once(khoroComm_t comm, int rank, int ranks) {
  khoroStream_t stream;
  OK(khoroStreamCreate(&stream));
  for (int on_stream = 0; on_stream < 2; ++on_stream) {
    float mine[2] = {(float)rank, (float)rank + 0.5f}, all[6];
    size_t each[3] = {2, 2, 2}, at[3] = {4, 0, 2};
    OK(khoroGroupStart());
    OK(khoroAllGatherV(mine, 2, all, each, at, khoroFloat32, comm, on_stream ? stream : NULL));
    memset(each, 0xff, sizeof each);
    memset(at, 0xff, sizeof at);
    OK(khoroGroupEnd());
    OK(khoroStreamSynchronize(stream));
    const size_t expected[3] = {4, 0, 2};
    for (int r = 0; r < ranks; ++r) {
      CHECK(all[expected[r]] == (float)r);
      CHECK(all[expected[r] + 1] == (float)r + 0.5f);
    }
  }
  OK(khoroStreamDestroy(stream));
}

/* Rank 0 gives rank 1 another count than rank 1 expects: all hear of it. */
static void check_pair_that_differs(khoroComm_t comm, int rank, int ranks) {
  static float to[3][4096 * 3], from[3][4096 * 3];
  size_t gives[3], gets[3], at[3];
  const double begin = seconds();
  for (int r = 0; r < ranks; ++r) gives[r] = gets[r] = 4096, at[r] = 4096 * (size_t)r;
  if (rank == 0) gives[1] = 4000;
  khoroResult_t result =
      khoroAlltoAllV(from[rank], gives, at, to[rank], gets, at, khoroFloat32, comm, NULL);
  /* Who has its own already hears it from the next call at the latest. */
  if (result == khoroSuccess) result = khoroBarrier(comm, NULL);
  check_result(__FILE__, __LINE__, "the call", khoroMismatch, result);
  CHECK_WORDS(rank == 1 ? "rank 1 expects 4096 elements from rank 0" : "alltoallv #1");
  CHECK(seconds() - begin < soon);
}

/* The same number of elements in all, dealt out in another way by rank 2. */
static void check_counts_that_differ(khoroComm_t comm, int rank, int ranks) {
  static float to[3][12], from[3][12];
  size_t each[3] = {4, 4, 4}, at[3] = {0, 4, 8};
  if (rank == 2) each[0] = 3, each[1] = 5, at[1] = 3;
  const khoroResult_t result =
      khoroAllGatherV(from[rank], 4, to[rank], each, at, khoroFloat32, comm, NULL);
  check_result(__FILE__, __LINE__, "the call", khoroMismatch, result);
  CHECK_WORDS("rank 2 called khoroAllGatherV(12 x khoroFloat32, counts ");
  (void)ranks;
}

static void check_forced_algorithm(khoroComm_t comm, int rank, int ranks) {
  static float to[3][3], from[3][3];
  const size_t one[3] = {1, 1, 1}, at[3] = {0, 1, 2};
  CHECK_REFUSED(khoroInvalidArgument,
                "KHORO_ALGORITHM=alltoall:bruck can only do blocks of equal length",
                khoroAlltoAllV(from[rank], one, at, to[rank], one, at, khoroFloat32, comm, NULL));
  OK(khoroAlltoAll(from[rank], to[rank], 1, khoroFloat32, comm, NULL));
  OK(khoroGatherV(from[rank], 1, to[rank], one, at, khoroFloat32, 0, comm, NULL));
  (void)ranks;
}

int main(void) {
  run_threads(3, check_refusals);
  run_threads(3, check_one_long_block);
  run_threads(3, check_arrays_are_read_at_once);
  run_threads(3, check_pair_that_differs);
  run_threads(3, check_counts_that_differ);
  CHECK(setenv("KHORO_ALGORITHM", "alltoall:bruck", 1) == 0);
  run_threads(3, check_forced_algorithm);
  return 0;
}
