/* SPDX-License-Identifier: Apache-2.0 */
/* Work and communication at once: gradients are averaged over the ranks layer by layer, each on a
 * stream while the next is computed. Run it: khoro run -n 2 -- 04_overlap */
#include <khoro/khoro.h>

#include "check.h"

enum { layers = 6, weights = 50000, steps = 10 };

static float weight[layers][weights], gradient[layers][weights];

/* Of the square of the distance from a point that differs between ranks: on average it is (layer +
 * 1). */
static void compute_gradient(int layer, int rank, int ranks) {
  const float point = (float)(layer + 1) + (float)rank - 0.5f * (float)(ranks - 1);
  for (int i = 0; i < weights; ++i) gradient[layer][i] = 2 * (weight[layer][i] - point);
}

static void follow_gradient(int layer) {
  for (int i = 0; i < weights; ++i) weight[layer][i] -= 0.25f * gradient[layer][i];
}

/* quote: begin */
/* What is queued runs in order, behind the back of this thread; an event says when it is done. */
static void step(int rank, int ranks, khoroComm_t comm, khoroStream_t stream, khoroEvent_t* done) {
  for (int layer = layers - 1; layer >= 0; --layer) {
    compute_gradient(layer, rank, ranks);
    check(khoroAllReduce(gradient[layer], gradient[layer], weights, khoroFloat32, khoroAvg, comm,
                         stream),
          comm);
    check(khoroEventRecord(done[layer], stream), NULL);
  }
  for (int layer = layers - 1; layer >= 0; --layer) {
    check(khoroEventWait(done[layer], -1), NULL); /* and whether it went well */
    follow_gradient(layer);
  }
}
/* quote: end */

int main(void) {
  khoroComm_t comm;
  khoroStream_t stream;
  khoroEvent_t done[layers];
  int rank, ranks;
  check(khoroCommInitWorld(&comm), NULL);
  check(khoroCommUserRank(comm, &rank), comm);
  check(khoroCommCount(comm, &ranks), comm);
  check(khoroStreamCreate(&stream), NULL);
  for (int layer = 0; layer < layers; ++layer) check(khoroEventCreate(&done[layer]), NULL);

  for (int s = 0; s < steps; ++s) step(rank, ranks, comm, stream, done);
  if (rank == 0)
    for (int layer = 0; layer < layers; ++layer)
      printf("layer %d: %.2f\n", layer, weight[layer][weights - 1]);

  for (int layer = 0; layer < layers; ++layer) check(khoroEventDestroy(done[layer]), NULL);
  check(khoroStreamDestroy(stream), NULL);
  check(khoroCommDestroy(comm), NULL);
  return 0;
}
