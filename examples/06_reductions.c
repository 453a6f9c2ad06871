/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions of one's own: a mean in which ranks count by what they have seen, and log(sum(exp)),
 * for which no reduction is there. Run it: khoro run -n 3 -- 06_reductions */
#include <khoro/khoro.h>
#include <math.h>

#include "check.h"

/* quote: begin */
/* inout[i] = log(exp(inout[i]) + exp(in[i])), without leaving the range of a float. */
static void add_logarithms(void* context, const void* in, void* inout, size_t count,
                           khoroDataType_t datatype) {
  const float* theirs = in;
  float* ours = inout;
  (void)context, (void)datatype; /* it is called for what the calls below name: khoroFloat32 */
  for (size_t i = 0; i < count; ++i) {
    const float high = fmaxf(theirs[i], ours[i]), low = fminf(theirs[i], ours[i]);
    ours[i] = high + log1pf(expf(low - high));
  }
}

/* The name is how ranks know that they mean the same function. */
static void log_sum_exp(const float* in, float* out, size_t count, khoroComm_t comm) {
  khoroRedOp_t op;
  check(khoroRedOpCreateUser(&op, "log-sum-exp", add_logarithms, NULL, 1, comm), comm);
  check(khoroAllReduce(in, out, count, khoroFloat32, op, comm, NULL), comm);
  check(khoroRedOpDestroy(op, comm), comm);
}

/* Each rank's numbers, times its own share of all samples. */
static void weighted_mean(const float* in, float* out, size_t count, int64_t samples,
                          khoroComm_t comm) {
  int64_t all;
  check(khoroAllReduce(&samples, &all, 1, khoroInt64, khoroSum, comm, NULL), comm);
  float share = (float)samples / (float)all;
  khoroRedOp_t op;
  check(khoroRedOpCreatePreMulSum(&op, &share, khoroFloat32, khoroScalarHostImmediate, comm), comm);
  check(khoroAllReduce(in, out, count, khoroFloat32, op, comm, NULL), comm);
  check(khoroRedOpDestroy(op, comm), comm);
}
/* quote: end */

int main(void) {
  khoroComm_t comm;
  int rank;
  check(khoroCommInitWorld(&comm), NULL);
  check(khoroCommUserRank(comm, &rank), comm);

  const float scores[2] = {(float)rank, -1000}, losses[2] = {(float)rank, 0.5f};
  float logarithms[2], means[2];
  log_sum_exp(scores, logarithms, 2, comm);
  weighted_mean(losses, means, 2, 100 * (rank + 1), comm);
  if (rank == 0)
    printf("log-sum-exp %.4f %.4f, mean %.4f %.4f\n", logarithms[0], logarithms[1], means[0],
           means[1]);

  check(khoroCommDestroy(comm), NULL);
  return 0;
}
