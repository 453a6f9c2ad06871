/* SPDX-License-Identifier: Apache-2.0 */
/* Bad arguments give a code and words, poison nothing, and touch no memory. */
#include "values.h"

static void check_all(khoroComm_t comm) {
  float in[8], out[8];
  fill(in, khoroFloat32, 8, 0, 0);
  memset(out, 0x33, sizeof out);

  CHECK_REFUSED(khoroInvalidArgument, "NULL",
                khoroAllReduce(in, out, 4, khoroFloat32, khoroSum, NULL, NULL));
  CHECK_REFUSED(khoroInvalidArgument, "send buffer is NULL",
                khoroAllReduce(NULL, out, 4, khoroFloat32, khoroSum, comm, NULL));
  CHECK_REFUSED(khoroInvalidArgument, "receive buffer is NULL",
                khoroAllReduce(in, NULL, 4, khoroFloat32, khoroSum, comm, NULL));
  for (int bad = -1; bad < 600; ++bad) {
    const int type = bad == -1 ? -2147483647 : bad;
    if (type >= 0 && type <= khoroFloat8e5m2) continue;
    CHECK_REFUSED(khoroInvalidArgument, "data type",
                  khoroAllReduce(in, out, 4, (khoroDataType_t)type, khoroSum, comm, NULL));
  }
  for (int op = -1; op < 600; ++op) {
    if (op >= 0 && op <= khoroAvg) continue;
    if (op >= khoroBand && op <= khoroBxor) continue;
    CHECK_REFUSED(khoroInvalidArgument, "reduction",
                  khoroAllReduce(in, out, 4, khoroFloat32, (khoroRedOp_t)op, comm, NULL));
  }
  const int bad_ranks[] = {-1, 1, 2, 1 << 30, -2147483647 - 1};
  for (int i = 0; i < 5; ++i) {
    CHECK_REFUSED(khoroInvalidArgument, "there is no rank",
                  khoroBroadcast(in, out, 4, khoroFloat32, bad_ranks[i], comm, NULL));
    CHECK_REFUSED(khoroInvalidArgument, "there is no rank",
                  khoroSend(in, 4, khoroFloat32, bad_ranks[i], comm, NULL));
    CHECK_REFUSED(khoroInvalidArgument, "there is no rank",
                  khoroRecv(out, 4, khoroFloat32, bad_ranks[i], comm, NULL));
  }
  const size_t huge[] = {SIZE_MAX, SIZE_MAX / 4, (size_t)1 << 61, (size_t)1 << 62};
  for (int i = 0; i < 4; ++i) {
    CHECK_REFUSED(khoroInvalidArgument, "more than memory can hold",
                  khoroAllReduce(in, out, huge[i], khoroFloat32, khoroSum, comm, NULL));
    CHECK_REFUSED(khoroInvalidArgument, "more than memory can hold",
                  khoroReduceScatter(in, out, huge[i], khoroFloat64, khoroSum, comm, NULL));
    CHECK_REFUSED(khoroInvalidArgument, "more than memory can hold",
                  khoroAllGather(in, out, huge[i], khoroInt64, comm, NULL));
    CHECK_REFUSED(khoroInvalidArgument, "more than memory can hold",
                  khoroBroadcast(in, out, huge[i], khoroFloat32, 0, comm, NULL));
  }
  CHECK_REFUSED(khoroInvalidArgument, "overlap",
                khoroAllReduce(in, in + 1, 4, khoroFloat32, khoroSum, comm, NULL));
  CHECK_REFUSED(khoroInvalidArgument, "overlap",
                khoroAllReduce(in + 3, in, 4, khoroFloat32, khoroSum, comm, NULL));
  CHECK_REFUSED(khoroInvalidArgument, "overlap",
                khoroBroadcast(in + 1, in, 4, khoroFloat32, 0, comm, NULL));
  int stream;
  CHECK_REFUSED(
      khoroInvalidArgument, "stream",
      khoroAllReduce(in, out, 4, khoroFloat32, khoroSum, comm, (khoroStream_t)(void*)&stream));
  CHECK_REFUSED(khoroInvalidArgument, "stream", khoroBarrier(comm, (khoroStream_t)(void*)&stream));
  CHECK_REFUSED(khoroInvalidUsage, "group", khoroSend(in, 4, khoroFloat32, 0, comm, NULL));
  for (int i = 0; i < 8; ++i) {
    const float kept = (float)contribution(0, (size_t)i);
    CHECK(in[i] == kept);
    CHECK(((unsigned char*)out)[i * 4] == 0x33);
  }
  /* Nothing was poisoned. */
  CHECK(async_error(comm) == khoroSuccess);
  OK(khoroAllReduce(in, out, 8, khoroFloat32, khoroSum, comm, NULL));
  CHECK(!memcmp(in, out, sizeof in));
  /* Count 0 ignores pointers. */
  OK(khoroAllReduce(NULL, NULL, 0, khoroFloat32, khoroSum, comm, NULL));
  OK(khoroAllGather(NULL, NULL, 0, khoroFloat32, comm, NULL));
}

/* Blocks of other ranks may not overlap either. */
static void check_blocks(khoroComm_t comm, int rank, int ranks) {
  float buffer[64] = {0};
  float* const other = buffer + 4 * ((rank + 1) % ranks);
  CHECK_REFUSED(khoroInvalidArgument, "overlap",
                khoroAllGather(other, buffer, 4, khoroFloat32, comm, NULL));
  CHECK_REFUSED(khoroInvalidArgument, "overlap",
                khoroReduceScatter(buffer, other, 4, khoroFloat32, khoroSum, comm, NULL));
  OK(khoroBarrier(comm, NULL));
}

int main(void) {
  khoroComm_t comm;
  OK(khoroCommInitAllHost(&comm, 1));
  check_all(comm);

  int number = 77;
  CHECK_REFUSED(khoroInvalidArgument, "version is NULL", khoroGetVersion(NULL));
  OK(khoroGetVersion(&number));
  CHECK(number == KHORO_VERSION);
  CHECK_REFUSED(khoroInvalidArgument, "count is NULL", khoroCommCount(comm, NULL));
  CHECK_REFUSED(khoroInvalidArgument, "rank is NULL", khoroCommUserRank(comm, NULL));
  CHECK_REFUSED(khoroInvalidArgument, "error is NULL", khoroCommGetAsyncError(comm, NULL));
  OK(khoroCommCount(comm, &number));
  CHECK(number == 1);
  OK(khoroCommUserRank(comm, &number));
  CHECK(number == 0);
  CHECK_REFUSED(khoroInvalidArgument, "a deadline of 0 ms", khoroCommSetDeadline(comm, 0));
  CHECK_REFUSED(khoroInvalidArgument, "a deadline of -5 ms", khoroCommSetDeadline(comm, -5));
  CHECK_REFUSED(khoroInvalidArgument, "a deadline of 1099511627777 ms",
                khoroCommSetDeadline(comm, ((int64_t)1 << 40) + 1));
  OK(khoroCommSetDeadline(comm, (int64_t)1 << 40));
  CHECK_REFUSED(khoroInvalidUsage, "without khoroGroupStart", khoroGroupEnd());
  CHECK(!strcmp(khoroGetErrorString((khoroResult_t)99), "unknown result"));
  OK(khoroCommDestroy(comm));

  khoroComm_t none = (khoroComm_t)0x5a;
  khoroUniqueId id;
  CHECK_REFUSED(khoroInvalidArgument, "comms is NULL", khoroCommInitAllHost(NULL, 2));
  CHECK_REFUSED(khoroInvalidArgument, "of 0 ranks", khoroCommInitAllHost(&none, 0));
  CHECK_REFUSED(khoroInvalidArgument, "of -1 ranks", khoroCommInitAllHost(&none, -1));
  CHECK_REFUSED(khoroInvalidArgument, "id is NULL", khoroGetUniqueId(NULL));
  memset(&id, 0x77, sizeof id);
  CHECK_REFUSED(khoroInvalidArgument, "it does not start as one does",
                khoroCommInitRank(&none, 2, id, 0));
  CHECK_REFUSED(khoroInvalidArgument, "rank 2 of 2", khoroCommInitRank(&none, 2, id, 2));
  CHECK_REFUSED(khoroInvalidArgument, "of 0 ranks", khoroCommInitRank(&none, 0, id, 0));
  CHECK_REFUSED(khoroInvalidArgument, "comm is NULL", khoroCommInitRank(NULL, 1, id, 0));
  CHECK(none == (khoroComm_t)0x5a);

  run_threads(3, check_blocks);
  return 0;
}
