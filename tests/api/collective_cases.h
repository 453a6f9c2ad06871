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

/* Blocks of unequal length, some of them empty, known on every rank. */
static inline size_t unequal(size_t count, int from, int to) {
  return (size_t)(from + 2 * to) % 3 == 0 ? 0 : count / (size_t)(1 + (from + to) % 4) + (size_t)to;
}

/* Fills counts and displacements with gaps; returns the elements that they span. */
static inline size_t lay_out(size_t* counts, size_t* displs, int ranks, size_t gap) {
  size_t end = gap;
  for (int r = 0; r < ranks; ++r) {
    displs[r] = end;
    end += counts[r] + gap;
  }
  return end;
}

enum { most_ranks_of_cases = 16 };

static inline void allgatherv_case(khoroComm_t comm, int rank, int ranks, khoroDataType_t type,
                                   size_t count) {
  size_t counts[most_ranks_of_cases], displs[most_ranks_of_cases];
  for (int r = 0; r < ranks; ++r) counts[r] = unequal(count, r, 1);
  const size_t all = lay_out(counts, displs, ranks, (size_t)rank), size = size_of(type);
  void *in = guarded(counts[rank] * size), *out = guarded(all * size),
       *expected = guarded(all * size);
  fill(in, type, counts[rank], rank, 0);
  memset(out, 0x33, all * size);
  memset(expected, 0x33, all * size);
  for (int r = 0; r < ranks; ++r) fill((char*)expected + displs[r] * size, type, counts[r], r, 0);
  OK(khoroAllGatherV(in, counts[rank], out, counts, displs, type, comm, NULL));
  check_equal(out, expected, type, all, "allgatherv");
  memset(out, 0x33, all * size);
  char* mine = (char*)out + displs[rank] * size;
  memcpy(mine, in, counts[rank] * size);
  OK(khoroAllGatherV(mine, counts[rank], out, counts, displs, type, comm, NULL));
  check_equal(out, expected, type, all, "allgatherv in place");
  release(in, counts[rank] * size), release(out, all * size), release(expected, all * size);
}

static inline void reducescatterv_case(khoroComm_t comm, int rank, int ranks, khoroDataType_t type,
                                       khoroRedOp_t op, size_t count) {
  size_t counts[most_ranks_of_cases], displs[most_ranks_of_cases];
  for (int r = 0; r < ranks; ++r) counts[r] = unequal(count, r, 2);
  const size_t all = lay_out(counts, displs, ranks, 0), size = size_of(type);
  const size_t own = counts[rank];
  void *in = guarded(all * size), *out = guarded(own * size), *expected = guarded(own * size);
  fill(in, type, all, rank, 0);
  for (size_t i = 0; i < own; ++i) store_reduced(expected, type, i, ranks, op, displs[rank] + i);
  OK(khoroReduceScatterV(in, out, counts, type, op, comm, NULL));
  check_equal(out, expected, type, own, "reducescatterv");
  char* mine = (char*)in + displs[rank] * size;
  OK(khoroReduceScatterV(in, mine, counts, type, op, comm, NULL));
  check_equal(mine, expected, type, own, "reducescatterv in place");
  release(in, all * size), release(out, own * size), release(expected, own * size);
}

static inline void gatherv_case(khoroComm_t comm, int rank, int ranks, int root,
                                khoroDataType_t type, size_t count) {
  size_t counts[most_ranks_of_cases], displs[most_ranks_of_cases];
  for (int r = 0; r < ranks; ++r) counts[r] = unequal(count, r, root);
  const size_t all = lay_out(counts, displs, ranks, 2), size = size_of(type), own = counts[rank];
  const int is_root = rank == root;
  void *in = guarded(own * size), *out = guarded(all * size), *expected = guarded(all * size);
  fill(in, type, own, rank, 0);
  memset(out, 0x33, all * size);
  memset(expected, 0x33, all * size);
  if (is_root)
    for (int r = 0; r < ranks; ++r) fill((char*)expected + displs[r] * size, type, counts[r], r, 0);
  /* What only the root needs is nothing elsewhere. */
  OK(khoroGatherV(in, own, out, is_root ? counts : NULL, is_root ? displs : NULL, type, root, comm,
                  NULL));
  check_equal(out, expected, type, all, "gatherv");
  if (is_root) {
    memset(out, 0x33, all * size);
    memcpy((char*)out + displs[rank] * size, in, own * size);
  }
  OK(khoroGatherV(is_root ? (char*)out + displs[rank] * size : in, own, is_root ? out : NULL,
                  counts, displs, type, root, comm, NULL));
  check_equal(out, expected, type, all, "gatherv in place");
  release(in, own * size), release(out, all * size), release(expected, all * size);
}

static inline void scatterv_case(khoroComm_t comm, int rank, int ranks, int root,
                                 khoroDataType_t type, size_t count) {
  size_t counts[most_ranks_of_cases], displs[most_ranks_of_cases];
  for (int r = 0; r < ranks; ++r) counts[r] = unequal(count, r, root + 1);
  const size_t all = lay_out(counts, displs, ranks, 1), size = size_of(type), own = counts[rank];
  const int is_root = rank == root;
  void *in = guarded(all * size), *kept = guarded(all * size), *out = guarded(own * size),
       *theirs = guarded(all * size);
  fill(in, type, all, rank, 0);
  memcpy(kept, in, all * size);
  fill(theirs, type, all, root, 0);
  const char* expected = (const char*)theirs + displs[rank] * size;
  OK(khoroScatterV(is_root ? in : NULL, is_root ? counts : NULL, is_root ? displs : NULL, out, own,
                   type, root, comm, NULL));
  check_equal(out, expected, type, own, "scatterv");
  memset(out, 0x33, own * size);
  OK(khoroScatterV(in, counts, displs, is_root ? (char*)in + displs[rank] * size : out, own, type,
                   root, comm, NULL));
  if (!is_root) check_equal(out, expected, type, own, "scatterv in place");
  check_equal(in, kept, type, all, "input of scatterv");
  release(in, all * size), release(kept, all * size), release(out, own * size);
  release(theirs, all * size);
}

static inline void alltoallv_case(khoroComm_t comm, int rank, int ranks, khoroDataType_t type,
                                  size_t count) {
  size_t gives[most_ranks_of_cases], gets[most_ranks_of_cases];
  size_t from[most_ranks_of_cases], to[most_ranks_of_cases], there[most_ranks_of_cases];
  for (int r = 0; r < ranks; ++r) {
    gives[r] = unequal(count, rank, r);
    gets[r] = unequal(count, r, rank);
  }
  const size_t size = size_of(type);
  const size_t in_all = lay_out(gives, from, ranks, 1), out_all = lay_out(gets, to, ranks, 3);
  void *in = guarded(in_all * size), *kept = guarded(in_all * size), *out = guarded(out_all * size),
       *expected = guarded(out_all * size);
  fill(in, type, in_all, rank, 0);
  memcpy(kept, in, in_all * size);
  memset(out, 0x33, out_all * size);
  memset(expected, 0x33, out_all * size);
  for (int r = 0; r < ranks; ++r) {
    size_t its[most_ranks_of_cases];
    for (int other = 0; other < ranks; ++other) its[other] = unequal(count, r, other);
    lay_out(its, there, ranks, 1);
    for (size_t i = 0; i < gets[r]; ++i)
      fill((char*)expected + (to[r] + i) * size, type, 1, r, there[rank] + i);
  }
  OK(khoroAlltoAllV(in, gives, from, out, gets, to, type, comm, NULL));
  check_equal(out, expected, type, out_all, "alltoallv");
  check_equal(in, kept, type, in_all, "input of alltoallv");
  release(in, in_all * size), release(kept, in_all * size);
  release(out, out_all * size), release(expected, out_all * size);
}

static inline void alltoallv_in_place_case(khoroComm_t comm, int rank, int ranks,
                                           khoroDataType_t type, size_t count) {
  size_t counts[most_ranks_of_cases], displs[most_ranks_of_cases], there[most_ranks_of_cases];
  for (int r = 0; r < ranks; ++r) counts[r] = unequal(count, rank, r) + unequal(count, r, rank);
  const size_t size = size_of(type), all = lay_out(counts, displs, ranks, 2);
  void *data = guarded(all * size), *expected = guarded(all * size);
  fill(data, type, all, rank, 0);
  memcpy(expected, data, all * size);
  for (int r = 0; r < ranks; ++r) {
    size_t its[most_ranks_of_cases];
    for (int other = 0; other < ranks; ++other)
      its[other] = unequal(count, r, other) + unequal(count, other, r);
    lay_out(its, there, ranks, 2);
    for (size_t i = 0; i < counts[r]; ++i)
      fill((char*)expected + (displs[r] + i) * size, type, 1, r, there[rank] + i);
  }
  OK(khoroAlltoAllV(data, counts, displs, data, counts, displs, type, comm, NULL));
  check_equal(data, expected, type, all, "alltoallv in place");
  release(data, all * size), release(expected, all * size);
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
        reducescatterv_case(comm, rank, ranks, type, all_ops[o], count);
      }
      allgather_case(comm, rank, ranks, type, count);
      alltoall_case(comm, rank, ranks, type, count);
      allgatherv_case(comm, rank, ranks, type, count);
      alltoallv_case(comm, rank, ranks, type, count);
      alltoallv_in_place_case(comm, rank, ranks, type, count);
      for (int root = 0; root < ranks; ++root) {
        broadcast_case(comm, rank, root, type, count);
        gather_case(comm, rank, ranks, root, type, count);
        scatter_case(comm, rank, ranks, root, type, count);
        gatherv_case(comm, rank, ranks, root, type, count);
        scatterv_case(comm, rank, ranks, root, type, count);
      }
      OK(khoroBarrier(comm, NULL));
    }
  }
}

#endif
