/* SPDX-License-Identifier: Apache-2.0 */
/* Bad arguments give a code and words, poison nothing, and touch no memory. */
#include "values.h"

static void check_all(khoroComm_t comm) {
  float in[8], out[8];
  fill(in, khoroFloat32, 8, 0, 0);
  memset(out, 0x33, sizeof out);

  CHECK_RESULT(khoroInvalidArgument,
               khoroAllReduce(in, out, 4, khoroFloat32, khoroSum, NULL, NULL));
  CHECK_WORDS("NULL");
  CHECK_RESULT(khoroInvalidArgument,
               khoroAllReduce(NULL, out, 4, khoroFloat32, khoroSum, comm, NULL));
  CHECK_WORDS("send buffer is NULL");
  CHECK_RESULT(khoroInvalidArgument,
               khoroAllReduce(in, NULL, 4, khoroFloat32, khoroSum, comm, NULL));
  CHECK_WORDS("receive buffer is NULL");
  for (int bad = -1; bad < 600; ++bad) {
    const int type = bad == -1 ? -2147483647 : bad;
    if (type == 2 || type == 4 || type == 7 || type == 8 || type == 9) continue;
    CHECK_RESULT(khoroInvalidArgument,
                 khoroAllReduce(in, out, 4, (khoroDataType_t)type, khoroSum, comm, NULL));
    CHECK_WORDS("data type");
  }
  for (int op = -1; op < 600; ++op) {
    if (op == 0 || op == 2 || op == 3 || op == 4) continue;
    CHECK_RESULT(khoroInvalidArgument,
                 khoroAllReduce(in, out, 4, khoroFloat32, (khoroRedOp_t)op, comm, NULL));
    CHECK_WORDS("reduction");
  }
  const int bad_ranks[] = {-1, 1, 2, 1 << 30, -2147483647 - 1};
  for (int i = 0; i < 5; ++i) {
    CHECK_RESULT(khoroInvalidArgument,
                 khoroBroadcast(in, out, 4, khoroFloat32, bad_ranks[i], comm, NULL));
    CHECK_WORDS("there is no rank");
    CHECK_RESULT(khoroInvalidArgument, khoroSend(in, 4, khoroFloat32, bad_ranks[i], comm, NULL));
    CHECK_RESULT(khoroInvalidArgument, khoroRecv(out, 4, khoroFloat32, bad_ranks[i], comm, NULL));
  }
  const size_t huge[] = {SIZE_MAX, SIZE_MAX / 4, (size_t)1 << 61, (size_t)1 << 62};
  for (int i = 0; i < 4; ++i) {
    CHECK_RESULT(khoroInvalidArgument,
                 khoroAllReduce(in, out, huge[i], khoroFloat32, khoroSum, comm, NULL));
    CHECK_WORDS("more than memory can hold");
    CHECK_RESULT(khoroInvalidArgument,
                 khoroReduceScatter(in, out, huge[i], khoroFloat64, khoroSum, comm, NULL));
    CHECK_RESULT(khoroInvalidArgument, khoroAllGather(in, out, huge[i], khoroInt64, comm, NULL));
    CHECK_RESULT(khoroInvalidArgument,
                 khoroBroadcast(in, out, huge[i], khoroFloat32, 0, comm, NULL));
  }
  CHECK_RESULT(khoroInvalidArgument,
               khoroAllReduce(in, in + 1, 4, khoroFloat32, khoroSum, comm, NULL));
  CHECK_WORDS("overlap");
  CHECK_RESULT(khoroInvalidArgument,
               khoroAllReduce(in + 3, in, 4, khoroFloat32, khoroSum, comm, NULL));
  CHECK_RESULT(khoroInvalidArgument, khoroBroadcast(in + 1, in, 4, khoroFloat32, 0, comm, NULL));
  int stream;
  CHECK_RESULT(khoroInvalidArgument, khoroAllReduce(in, out, 4, khoroFloat32, khoroSum, comm,
                                                    (khoroStream_t)(void*)&stream));
  CHECK_WORDS("stream");
  CHECK_RESULT(khoroInvalidArgument, khoroBarrier(comm, (khoroStream_t)(void*)&stream));
  CHECK_RESULT(khoroInvalidUsage, khoroSend(in, 4, khoroFloat32, 0, comm, NULL));
  CHECK_WORDS("group");
  for (int i = 0; i < 8; ++i) {
    const float kept = (float)contribution(0, (size_t)i);
    CHECK(in[i] == kept);
    CHECK(((unsigned char*)out)[i * 4] == 0x33);
  }
  /* Nothing was poisoned. */
  khoroResult_t error = khoroInternalError;
  OK(khoroCommGetAsyncError(comm, &error));
  CHECK(error == khoroSuccess);
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
  CHECK_RESULT(khoroInvalidArgument, khoroAllGather(other, buffer, 4, khoroFloat32, comm, NULL));
  CHECK_RESULT(khoroInvalidArgument,
               khoroReduceScatter(buffer, other, 4, khoroFloat32, khoroSum, comm, NULL));
  CHECK_WORDS("overlap");
  OK(khoroBarrier(comm, NULL));
}

int main(void) {
  khoroComm_t comm;
  OK(khoroCommInitAllHost(&comm, 1));
  check_all(comm);

  int number = 77;
  CHECK_RESULT(khoroInvalidArgument, khoroGetVersion(NULL));
  OK(khoroGetVersion(&number));
  CHECK(number == KHORO_VERSION);
  CHECK_RESULT(khoroInvalidArgument, khoroCommCount(comm, NULL));
  CHECK_RESULT(khoroInvalidArgument, khoroCommUserRank(comm, NULL));
  CHECK_RESULT(khoroInvalidArgument, khoroCommGetAsyncError(comm, NULL));
  OK(khoroCommCount(comm, &number));
  CHECK(number == 1);
  OK(khoroCommUserRank(comm, &number));
  CHECK(number == 0);
  CHECK_RESULT(khoroInvalidArgument, khoroCommSetDeadline(comm, 0));
  CHECK_RESULT(khoroInvalidArgument, khoroCommSetDeadline(comm, -5));
  CHECK_RESULT(khoroInvalidArgument, khoroCommSetDeadline(comm, ((int64_t)1 << 40) + 1));
  OK(khoroCommSetDeadline(comm, (int64_t)1 << 40));
  CHECK_RESULT(khoroInvalidUsage, khoroGroupEnd());
  CHECK(!strcmp(khoroGetErrorString((khoroResult_t)99), "unknown result"));
  OK(khoroCommDestroy(comm));

  khoroComm_t none = (khoroComm_t)0x5a;
  khoroUniqueId id;
  CHECK_RESULT(khoroInvalidArgument, khoroCommInitAllHost(NULL, 2));
  CHECK_RESULT(khoroInvalidArgument, khoroCommInitAllHost(&none, 0));
  CHECK_RESULT(khoroInvalidArgument, khoroCommInitAllHost(&none, -1));
  CHECK_RESULT(khoroInvalidArgument, khoroGetUniqueId(NULL));
  memset(&id, 0x77, sizeof id);
  CHECK_RESULT(khoroInvalidArgument, khoroCommInitRank(&none, 2, id, 0));
  CHECK_RESULT(khoroInvalidArgument, khoroCommInitRank(&none, 2, id, 2));
  CHECK_RESULT(khoroInvalidArgument, khoroCommInitRank(&none, 0, id, 0));
  CHECK_RESULT(khoroInvalidArgument, khoroCommInitRank(NULL, 1, id, 0));
  CHECK(none == (khoroComm_t)0x5a);

  run_threads(3, check_blocks);
  return 0;
}
