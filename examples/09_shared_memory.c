/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers that ranks of one machine read in place: the mean of long gradients, which costs half of
 * the copies. Run it: khoro run -n 2 -- 09_shared_memory */
#include <khoro/khoro.h>

#include "check.h"

enum { count = 1 << 20, steps = 10 };

int main(void) {
  khoroComm_t comm;
  int rank;
  check(khoroCommInitWorld(&comm), NULL);
  check(khoroCommUserRank(comm, &rank), comm);

  /* quote: begin */
  void *memory, *result;
  check(khoroMemAlloc(&memory, count * sizeof(float)), NULL);
  check(khoroMemAlloc(&result, count * sizeof(float)), NULL);
  float *const gradient = memory, *const mean = result;
  for (int step = 1; step <= steps; ++step) {
    for (int i = 0; i < count; ++i) gradient[i] = (float)(step * (rank + 1));
    check(khoroAllReduce(gradient, mean, count, khoroFloat32, khoroAvg, comm, NULL), comm);
  }
  /* quote: end */

  if (rank == 0) printf("the mean gradient is %g\n", mean[count - 1]);
  check(khoroCommDestroy(comm), NULL);
  check(khoroMemFree(gradient), NULL);
  check(khoroMemFree(mean), NULL);
  return 0;
}
