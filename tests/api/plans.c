/* SPDX-License-Identifier: Apache-2.0 */
/* Plans: calls that are written down once make the same as the calls themselves, every time. */
#include "values.h"

static void set(float* to, int count, float value) {
  for (int i = 0; i < count; ++i) to[i] = value;
}

static void check_one_call(khoroComm_t comm, int rank, int ranks) {
  float in[5], out[5];
  khoroPlan_t plan;
  OK(khoroGroupStart());
  OK(khoroAllReduce(in, out, 5, khoroFloat32, khoroSum, comm, NULL));
  OK(khoroPlanCreate(&plan));
  OK(khoroBarrier(comm, NULL)); /* the group is closed: this blocks */
  for (int round = 0; round < 100; ++round) {
    set(in, 5, (float)(rank + round));
    set(out, 5, -1);
    OK(khoroPlanLaunch(plan, NULL));
    for (int i = 0; i < 5; ++i) CHECK(out[i] == (float)(ranks * round + ranks * (ranks - 1) / 2));
  }
  OK(khoroPlanDestroy(plan));
  CHECK_REFUSED(khoroInvalidArgument, "plan handle", khoroPlanLaunch(plan, NULL));
  CHECK_REFUSED(khoroInvalidArgument, "plan handle", khoroPlanDestroy(plan));
}

/* A ring of messages and a collective, blocking, on a stream, and within another group. */
static void check_several_calls(khoroComm_t comm, int rank, int ranks) {
  float mine, theirs, sum;
  khoroPlan_t plan;
  khoroStream_t stream;
  OK(khoroStreamCreate(&stream));
  OK(khoroGroupStart());
  OK(khoroSend(&mine, 1, khoroFloat32, (rank + 1) % ranks, comm, NULL));
  OK(khoroRecv(&theirs, 1, khoroFloat32, (rank + ranks - 1) % ranks, comm, NULL));
  OK(khoroAllReduce(&mine, &sum, 1, khoroFloat32, khoroSum, comm, NULL));
  OK(khoroPlanCreate(&plan));
  for (int round = 0; round < 30; ++round) {
    mine = (float)(rank * 100 + round);
    theirs = sum = -1;
    if (round % 3 == 0) {
      OK(khoroPlanLaunch(plan, NULL));
    } else if (round % 3 == 1) {
      OK(khoroPlanLaunch(plan, stream));
      OK(khoroStreamSynchronize(stream));
    } else {
      OK(khoroGroupStart());
      OK(khoroPlanLaunch(plan, NULL));
      CHECK(theirs == -1); /* it joins the group */
      OK(khoroGroupEnd());
    }
    CHECK(theirs == (float)((rank + ranks - 1) % ranks * 100 + round));
    CHECK(sum == (float)(ranks * round + 100 * ranks * (ranks - 1) / 2));
  }
  OK(khoroPlanDestroy(plan));
  OK(khoroStreamDestroy(stream));
}

/* Counts and displacements are the plan's own. */
static void check_arrays_are_kept(khoroComm_t comm, int rank, int ranks) {
  int32_t mine = 7 * rank, all[8];
  size_t counts[8], displs[8];
  khoroPlan_t plan;
  for (int r = 0; r < ranks; ++r) counts[r] = 1, displs[r] = (size_t)(ranks - 1 - r);
  OK(khoroGroupStart());
  OK(khoroAllGatherV(&mine, 1, all, counts, displs, khoroInt32, comm, NULL));
  OK(khoroPlanCreate(&plan));
  memset(counts, 0xff, sizeof counts);
  memset(displs, 0xff, sizeof displs);
  for (int round = 0; round < 3; ++round) {
    memset(all, 0, sizeof all);
    OK(khoroPlanLaunch(plan, NULL));
    for (int r = 0; r < ranks; ++r) CHECK(all[ranks - 1 - r] == 7 * r);
  }
  OK(khoroPlanDestroy(plan));
}

static void check_refusals(khoroComm_t comm, int rank, int ranks) {
  khoroPlan_t plan = NULL;
  float in[2] = {1, 2}, out[2];
  CHECK_REFUSED(khoroInvalidUsage, "0 groups are open", khoroPlanCreate(&plan));
  OK(khoroGroupStart());
  CHECK_REFUSED(khoroInvalidUsage, "holds no call", khoroPlanCreate(&plan));
  OK(khoroAllReduce(in, out, 2, khoroFloat32, khoroSum, comm, NULL));
  CHECK_REFUSED(khoroInvalidArgument, "NULL", khoroPlanCreate(NULL));
  OK(khoroGroupStart());
  CHECK_REFUSED(khoroInvalidUsage, "2 groups are open", khoroPlanCreate(&plan));
  OK(khoroGroupEnd());
  CHECK(plan == NULL);
  OK(khoroGroupEnd()); /* it was open all the time, and runs */
  CHECK(out[0] == (float)ranks);
  CHECK_REFUSED(khoroInvalidArgument, "plan is NULL", khoroPlanLaunch(NULL, NULL));
  CHECK_REFUSED(khoroInvalidArgument, "plan is NULL", khoroPlanDestroy(NULL));
  CHECK_REFUSED(khoroInvalidArgument, "plan handle", khoroPlanLaunch((khoroPlan_t)(void*)in, NULL));
  (void)rank;
}

/* A plan outlives its communicator without harm. */
static void check_destroyed(void) {
  khoroComm_t comm;
  khoroPlan_t one, two;
  float in = 3, out = 0;
  OK(khoroCommInitAllHost(&comm, 1));
  OK(khoroGroupStart());
  OK(khoroAllReduce(&in, &out, 1, khoroFloat32, khoroSum, comm, NULL));
  OK(khoroPlanCreate(&one));
  OK(khoroGroupStart());
  OK(khoroAllReduce(&in, &out, 1, khoroFloat32, khoroSum, comm, NULL));
  OK(khoroAllReduce(&in, &out, 1, khoroFloat32, khoroSum, comm, NULL));
  OK(khoroPlanCreate(&two));
  OK(khoroCommDestroy(comm));
  CHECK_REFUSED(khoroInvalidArgument, "communicator", khoroPlanLaunch(one, NULL));
  CHECK_REFUSED(khoroInvalidArgument, "communicator", khoroPlanLaunch(two, NULL));
  OK(khoroPlanDestroy(one));
  OK(khoroPlanDestroy(two));
}

int main(void) {
  for (int ranks = 1; ranks <= 4; ++ranks) {
    run_threads(ranks, check_one_call);
    if (ranks > 1) run_threads(ranks, check_several_calls);
    run_threads(ranks, check_arrays_are_kept);
  }
  run_threads(2, check_refusals);
  check_destroyed();
  return 0;
}
