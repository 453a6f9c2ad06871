/* SPDX-License-Identifier: Apache-2.0 */
/* Every collective, type, reduction and way to lay out buffers, as one rank's part. */
#ifndef KHORO_TESTS_COLLECTIVE_CASES_H
#define KHORO_TESTS_COLLECTIVE_CASES_H

#include "values.h"

static inline void allreduce_case(khoroComm_t comm, int rank, int ranks, khoroDataType_t type,
                                  khoroRedOp_t op, size_t count) {
  const size_t bytes = count * size_of(type);
  void *in = guarded(bytes), *kept = guarded(bytes), *out = guarded(bytes),
       *expected = guarded(bytes);
  fill(in, type, count, rank, 0);
  memcpy(kept, in, bytes);
  for (size_t i = 0; i < count; ++i) store_reduced(expected, type, i, ranks, op, i);
  OK(khoroAllReduce(in, out, count, type, op, comm, NULL));
  check_equal(out, expected, type, count, "allreduce");
  check_equal(in, kept, type, count, "input of allreduce");
  OK(khoroAllReduce(in, in, count, type, op, comm, NULL));
  check_equal(in, expected, type, count, "allreduce in place");
  release(in, bytes), release(kept, bytes), release(out, bytes), release(expected, bytes);
}

static inline void reducescatter_case(khoroComm_t comm, int rank, int ranks, khoroDataType_t type,
                                      khoroRedOp_t op, size_t count) {
  const size_t block = count * size_of(type), bytes = block * (size_t)ranks;
  const size_t first = count * (size_t)rank;
  void *in = guarded(bytes), *out = guarded(block), *expected = guarded(block);
  fill(in, type, count * (size_t)ranks, rank, 0);
  for (size_t i = 0; i < count; ++i) store_reduced(expected, type, i, ranks, op, first + i);
  OK(khoroReduceScatter(in, out, count, type, op, comm, NULL));
  check_equal(out, expected, type, count, "reducescatter");
  char* mine = (char*)in + block * (size_t)rank;
  OK(khoroReduceScatter(in, mine, count, type, op, comm, NULL));
  check_equal(mine, expected, type, count, "reducescatter in place");
  release(in, bytes), release(out, block), release(expected, block);
}

static inline void allgather_case(khoroComm_t comm, int rank, int ranks, khoroDataType_t type,
                                  size_t count) {
  const size_t block = count * size_of(type), bytes = block * (size_t)ranks;
  void *in = guarded(block), *out = guarded(bytes), *expected = guarded(bytes);
  fill(in, type, count, rank, 0);
  for (int r = 0; r < ranks; ++r) fill((char*)expected + block * (size_t)r, type, count, r, 0);
  OK(khoroAllGather(in, out, count, type, comm, NULL));
  check_equal(out, expected, type, count * (size_t)ranks, "allgather");
  char* mine = (char*)out + block * (size_t)rank;
  memset(out, 0x33, bytes);
  memcpy(mine, in, block);
  OK(khoroAllGather(mine, out, count, type, comm, NULL));
  check_equal(out, expected, type, count * (size_t)ranks, "allgather in place");
  release(in, block), release(out, bytes), release(expected, bytes);
}

static inline void broadcast_case(khoroComm_t comm, int rank, int root, khoroDataType_t type,
                                  size_t count) {
  const size_t bytes = count * size_of(type);
  void *in = guarded(bytes), *out = guarded(bytes), *expected = guarded(bytes);
  fill(in, type, count, rank, 0);
  fill(expected, type, count, root, 0);
  OK(khoroBroadcast(rank == root ? in : NULL, out, count, type, root, comm, NULL));
  check_equal(out, expected, type, count, "broadcast");
  OK(khoroBroadcast(in, in, count, type, root, comm, NULL));
  check_equal(in, expected, type, count, "broadcast in place");
  release(in, bytes), release(out, bytes), release(expected, bytes);
}

static inline void reduce_case(khoroComm_t comm, int rank, int ranks, int root,
                               khoroDataType_t type, khoroRedOp_t op, size_t count) {
  const size_t bytes = count * size_of(type);
  void *in = guarded(bytes), *kept = guarded(bytes), *out = guarded(bytes),
       *expected = guarded(bytes);
  fill(in, type, count, rank, 0);
  memcpy(kept, in, bytes);
  memset(out, 0x33, bytes);
  memset(expected, 0x33, bytes);
  if (rank == root)
    for (size_t i = 0; i < count; ++i) store_reduced(expected, type, i, ranks, op, i);
  OK(khoroReduce(in, out, count, type, op, root, comm, NULL));
  check_equal(out, expected, type, count, "reduce");
  check_equal(in, kept, type, count, "input of reduce");
  OK(khoroReduce(in, rank == root ? in : NULL, count, type, op, root, comm, NULL));
  check_equal(in, rank == root ? expected : kept, type, count, "reduce in place");
  release(in, bytes), release(kept, bytes), release(out, bytes), release(expected, bytes);
}

static inline void gather_case(khoroComm_t comm, int rank, int ranks, int root,
                               khoroDataType_t type, size_t count) {
  const size_t block = count * size_of(type), bytes = block * (size_t)ranks;
  void *in = guarded(block), *out = guarded(bytes), *expected = guarded(bytes);
  fill(in, type, count, rank, 0);
  memset(out, 0x33, bytes);
  memset(expected, 0x33, bytes);
  if (rank == root)
    for (int r = 0; r < ranks; ++r) fill((char*)expected + block * (size_t)r, type, count, r, 0);
  OK(khoroGather(in, out, count, type, root, comm, NULL));
  check_equal(out, expected, type, count * (size_t)ranks, "gather");
  char* mine = (char*)out + block * (size_t)rank;
  memset(out, 0x33, bytes);
  memcpy(mine, in, block);
  if (rank != root) memcpy((char*)expected + block * (size_t)rank, in, block);
  OK(khoroGather(mine, rank == root ? out : NULL, count, type, root, comm, NULL));
  check_equal(out, expected, type, count * (size_t)ranks, "gather in place");
  release(in, block), release(out, bytes), release(expected, bytes);
}

static inline void scatter_case(khoroComm_t comm, int rank, int ranks, int root,
                                khoroDataType_t type, size_t count) {
  const size_t block = count * size_of(type), bytes = block * (size_t)ranks;
  void *in = guarded(bytes), *all = guarded(bytes), *kept = guarded(bytes), *out = guarded(block);
  fill(in, type, count * (size_t)ranks, rank, 0);
  memcpy(kept, in, bytes);
  fill(all, type, count * (size_t)ranks, root, 0);
  const char* expected = (const char*)all + block * (size_t)rank;
  OK(khoroScatter(rank == root ? in : NULL, out, count, type, root, comm, NULL));
  check_equal(out, expected, type, count, "scatter");
  // In place on the root; elsewhere into the middle of what is its own.
  char* mine = (char*)in + block * (size_t)rank;
  memcpy((char*)kept + block * (size_t)rank, expected, block);
  OK(khoroScatter(in, mine, count, type, root, comm, NULL));
  check_equal(in, kept, type, count * (size_t)ranks, "scatter in place");
  release(in, bytes), release(all, bytes), release(kept, bytes), release(out, block);
}

static inline void alltoall_case(khoroComm_t comm, int rank, int ranks, khoroDataType_t type,
                                 size_t count) {
  const size_t all = count * (size_t)ranks, block = count * size_of(type);
  const size_t bytes = block * (size_t)ranks;
  void *in = guarded(bytes), *kept = guarded(bytes), *out = guarded(bytes),
       *expected = guarded(bytes), *theirs = guarded(bytes);
  fill(in, type, all, rank, 0);
  memcpy(kept, in, bytes);
  for (int r = 0; r < ranks; ++r) {
    fill(theirs, type, all, r, 0);
    memcpy((char*)expected + block * (size_t)r, (char*)theirs + block * (size_t)rank, block);
  }
  OK(khoroAlltoAll(in, out, count, type, comm, NULL));
  check_equal(out, expected, type, all, "alltoall");
  check_equal(in, kept, type, all, "input of alltoall");
  OK(khoroAlltoAll(in, in, count, type, comm, NULL));
  check_equal(in, expected, type, all, "alltoall in place");
  release(in, bytes), release(kept, bytes), release(out, bytes), release(expected, bytes);
  release(theirs, bytes);
}

static const size_t case_counts[] = {0, 1, 2, 3, 17, 33, 1000, 4099, 70001};
enum { case_count_count = 9 };

static inline void every_collective(khoroComm_t comm, int rank, int ranks) {
  for (int c = 0; c < case_count_count; ++c) {
    const size_t count = case_counts[c];
    for (int t = 0; t < type_count; ++t) {
      const khoroDataType_t type = all_types[t];
      for (int o = 0; o < op_count; ++o) {
        allreduce_case(comm, rank, ranks, type, all_ops[o], count);
        reducescatter_case(comm, rank, ranks, type, all_ops[o], count);
        reduce_case(comm, rank, ranks, o % ranks, type, all_ops[o], count);
      }
      allgather_case(comm, rank, ranks, type, count);
      alltoall_case(comm, rank, ranks, type, count);
      for (int root = 0; root < ranks; ++root) {
        broadcast_case(comm, rank, root, type, count);
        gather_case(comm, rank, ranks, root, type, count);
        scatter_case(comm, rank, ranks, root, type, count);
      }
      OK(khoroBarrier(comm, NULL));
    }
  }
}

#endif
