/* SPDX-License-Identifier: Apache-2.0 */
/* A process with no call open, and one that is blocked on a late peer, cost next to no time. */
#include "usage.h"

enum { late_ms = 3000 };

static void body(khoroComm_t comm, int rank, int ranks) {
  float in = 1, out = 0;
  for (int i = 0; i < 10; ++i) OK(khoroAllReduce(&in, &out, 1, khoroFloat32, khoroSum, comm, NULL));
  const double before = processor_seconds();
  if (rank == 0) sleep_ms(late_ms); /* no call open */
  if (rank == 0) CHECK(processor_seconds() - before < idle_seconds);
  OK(khoroAllReduce(&in, &out, 1, khoroFloat32, khoroSum, comm, NULL));
  if (rank == 1) CHECK(processor_seconds() - before < idle_seconds);
  CHECK(out == (float)ranks);
  /* In a group of two communicators' worth of waiting the sleeper polls descriptors. */
  const double again = processor_seconds();
  if (rank == 0) sleep_ms(late_ms);
  OK(khoroGroupStart());
  OK(khoroSend(&in, 1, khoroFloat32, (rank + 1) % ranks, comm, NULL));
  OK(khoroRecv(&out, 1, khoroFloat32, (rank + 1) % ranks, comm, NULL));
  OK(khoroGroupEnd());
  if (rank == 1) CHECK(processor_seconds() - again < idle_seconds);
}

int main(void) {
  run_processes(2, body);
  return 0;
}
