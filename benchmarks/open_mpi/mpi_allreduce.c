/* SPDX-License-Identifier: Apache-2.0 */
/* Open MPI in the loop of all_reduce_perf: for each size from MIN to MAX, doubled each time, CYCLES
 * times ITERATIONS back-to-back allreduces of floats after a barrier. Rank 0 prints one line per
 * size and cycle: bytes, and microseconds per call as the mean over the ranks.
 *
 * usage: mpi_allreduce MIN MAX ITERATIONS WARMUPS CYCLES */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static double measure(const float* input, float* output, int count, int iterations, int warmups) {
  int ranks;
  double seconds, sum;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int k = 0; k < warmups; ++k)
    MPI_Allreduce(input, output, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  seconds = MPI_Wtime();
  for (int k = 0; k < iterations; ++k)
    MPI_Allreduce(input, output, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  seconds = MPI_Wtime() - seconds;
  MPI_Allreduce(&seconds, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return sum / ranks / iterations;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv); /* errors end the program: MPI's default */
  if (argc != 6) {
    fprintf(stderr, "usage: mpi_allreduce MIN MAX ITERATIONS WARMUPS CYCLES\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const size_t least = strtoull(argv[1], NULL, 10), most = strtoull(argv[2], NULL, 10);
  const int iterations = atoi(argv[3]), warmups = atoi(argv[4]), cycles = atoi(argv[5]);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  float* input = aligned_alloc(4096, (most + 4095) / 4096 * 4096);
  float* output = aligned_alloc(4096, (most + 4095) / 4096 * 4096);
  if (least < sizeof(float) || iterations < 1 || !input || !output) {
    fprintf(stderr, "mpi_allreduce: a bad size or count, or no memory\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  for (size_t i = 0; i < most / sizeof(float); ++i) input[i] = output[i] = 1.0f;
  for (int cycle = 0; cycle < cycles; ++cycle) {
    for (size_t bytes = least; bytes <= most; bytes *= 2) {
      const int count = (int)(bytes / sizeof(float));
      const double seconds = measure(input, output, count, iterations, warmups);
      if (rank == 0) printf("%zu %.4f\n", bytes, seconds * 1e6);
    }
  }
  free(input);
  free(output);
  MPI_Finalize();
  return 0;
}
