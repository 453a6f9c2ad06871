/* SPDX-License-Identifier: Apache-2.0 */
/* With KHORO_DETERMINISM=exact the same values reduced alone and as the head of many more, by each
 * algorithm that may be forced, on 2..9 ranks as processes, as threads and mixed, have equal bits:
 * those of a left fold in rank order. Prints its cases. */
#include "types.h"

enum { head = 1000, many = 20000, all = 100000, most_ranks = 9 };
enum placement { processes, threads, mixed, placements };
static const char* const placement_names[] = {"processes", "threads", "mixed"};

static const char* const algorithms[] = {NULL,
                                         "allreduce:one-shot",
                                         "allreduce:two-shot",
                                         "allreduce:recursive-doubling",
                                         "reduce:linear",
                                         "reducescatter:linear"};
enum { algorithm_count = 6 };

/* Whether an algorithm folds in rank order; the others are refused in exact mode. */
static int is_legal(const char* algorithm) { return !algorithm || !strstr(algorithm, "recursive"); }

static uint16_t to_bf16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16); /* to nearest even */
}

static float from_bf16(uint16_t bits) {
  const uint32_t wide = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &wide, 4);
  return value;
}

/* The bits of numbers whose sizes differ by up to 2^12, of either sign: nearly every order of
 * adding them gives another sum. Of an integer any bits. */
static uint64_t bits_of(const struct type* type, int rank, size_t i) {
  uint64_t bits = (uint64_t)rank << 32 | i;
  for (int round = 0; round < 3; ++round) bits = (bits ^ bits >> 29) * 0xbf58476d1ce4e5b9u;
  if (type->mantissa_bits == 0) return bits;
  const uint64_t bias = ((uint64_t)1 << (type->exponent_bits - 1)) - 1;
  const uint64_t mantissa = bits >> 11 & (((uint64_t)1 << type->mantissa_bits) - 1);
  const uint64_t exponent = bias - 6 + (bits & 0x7ff) % 12;
  return (bits >> 63 << type->exponent_bits | exponent) << type->mantissa_bits | mantissa;
}

static uint16_t value_of(int rank, size_t i) { return (uint16_t)bits_of(&types[1], rank, i); }

static uint16_t expected_of(int ranks, khoroRedOp_t op, size_t i) {
  float value = from_bf16(value_of(0, i));
  for (int r = 1; r < ranks; ++r) {
    const float next = from_bf16(value_of(r, i));
    value = op == khoroProd ? value * next : value + next;
  }
  return to_bf16(op == khoroAvg ? value / (float)ranks : value);
}

/* How many of the first values differ from a left fold. */
static int differing(const uint16_t* got, int ranks, khoroRedOp_t op, size_t first, size_t count) {
  int found = 0;
  for (size_t i = 0; i < count; ++i) found += got[i] != expected_of(ranks, op, first + i);
  return found;
}

static void every_reduction(khoroComm_t comm, int rank, int ranks) {
  static const khoroRedOp_t ops[] = {khoroSum, khoroProd, khoroAvg};
  uint16_t *in = malloc(all * 2), *out = malloc(all * 2);
  CHECK(in && out);
  for (size_t i = 0; i < all; ++i) in[i] = value_of(rank, i);
  for (int o = 0; o < 3; ++o)
    for (int many = 0; many < 2; ++many) {
      const khoroRedOp_t op = ops[o];
      const size_t count = many ? all : head;
      OK(khoroAllReduce(in, out, count, khoroBfloat16, op, comm, NULL));
      CHECK(differing(out, ranks, op, 0, head) == 0);
      memset(out, 0, all * 2);
      OK(khoroReduce(in, out, count, khoroBfloat16, op, ranks / 2, comm, NULL));
      if (rank == ranks / 2) CHECK(differing(out, ranks, op, 0, head) == 0);
      const size_t block = count / (size_t)ranks, own = (size_t)rank * block;
      OK(khoroReduceScatter(in, out, block, khoroBfloat16, op, comm, NULL));
      CHECK(differing(out, ranks, op, own, block < head ? block : head) == 0);
    }
  free(in), free(out);
}

/* Little-endian. */
static void draw(char* buffer, const struct type* type, int rank, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const uint64_t bits = bits_of(type, rank, i);
    memcpy(buffer + i * type->bytes, &bits, type->bytes);
  }
}

/* Whatever the call and the count, an element has the bits that it has in an allreduce of many. */
static void every_type(khoroComm_t comm, int rank, int ranks) {
  static const khoroRedOp_t ops[] = {khoroSum, khoroProd, khoroAvg};
  const size_t counts[] = {head, many};
  char *in = malloc(many * 8), *out = malloc(many * 8), *expected = malloc(many * 8);
  CHECK(in && out && expected);
  for (int t = 0; t < type_count; ++t) {
    const struct type* type = &types[t];
    draw(in, type, rank, many);
    for (int o = 0; o < 3; ++o) {
      OK(khoroAllReduce(in, expected, many, type->type, ops[o], comm, NULL));
      OK(khoroAllReduce(in, out, head, type->type, ops[o], comm, NULL));
      CHECK(!memcmp(out, expected, head * type->bytes));
      for (int c = 0; c < 2; ++c) {
        const size_t count = counts[c], block = count / (size_t)ranks;
        OK(khoroReduce(in, out, count, type->type, ops[o], ranks / 2, comm, NULL));
        if (rank == ranks / 2) CHECK(!memcmp(out, expected, count * type->bytes));
        OK(khoroReduceScatter(in, out, block, type->type, ops[o], comm, NULL));
        CHECK(!memcmp(out, expected + (size_t)rank * block * type->bytes, block * type->bytes));
      }
    }
  }
  free(in), free(out), free(expected);
}

/* Without exact mode an element's bits depend on how many are reduced beside it, of each type of
 * whose numbers a sum is not always exact. */
static void company_matters(khoroComm_t comm, int rank, int ranks) {
  char *in = malloc(many * 8), *alone = malloc(head * 8), *out = malloc(many * 8);
  CHECK(in && alone && out);
  for (int t = 0; t < float_count; ++t) {
    const struct type* type = &types[t];
    int found = 0;
    if (type->bytes == 1) continue;
    draw(in, type, rank, many);
    OK(khoroAllReduce(in, alone, head, type->type, khoroSum, comm, NULL));
    OK(khoroAllReduce(in, out, many, type->type, khoroSum, comm, NULL));
    for (size_t i = 0; i < head; ++i)
      found += memcmp(alone + i * type->bytes, out + i * type->bytes, type->bytes) != 0;
    CHECK(found > head / 10);
  }
  free(in), free(alone), free(out);
  (void)ranks;
}

/* Without exact mode: the values tell orders apart, or all of this would show nothing. */
static void order_matters(khoroComm_t comm, int rank, int ranks) {
  uint16_t in[head], out[head];
  for (size_t i = 0; i < head; ++i) in[i] = value_of(rank, i);
  OK(khoroAllReduce(in, out, head, khoroBfloat16, khoroSum, comm, NULL));
  CHECK(differing(out, ranks, khoroSum, 0, head) > head / 10);
}

static struct meeting_place* place;

static void join_and_reduce(khoroComm_t none, int rank, int ranks) {
  (void)none;
  khoroComm_t comm = join_at(place, ranks, rank);
  every_reduction(comm, rank, ranks);
  every_type(comm, rank, ranks);
  OK(khoroCommDestroy(comm));
}

/* Two processes, the ranks dealt out to them by turns: neighbours are never together. */
static int process_of(enum placement how, int rank) {
  return how == processes ? rank : how == threads ? 0 : rank % 2;
}

static void run_process(enum placement how, int ranks, int process) {
  struct rank_thread selves[most_ranks];
  pthread_t running[most_ranks];
  int count = 0;
  for (int r = 0; r < ranks; ++r) {
    if (process_of(how, r) != process) continue;
    selves[count] = (struct rank_thread){join_and_reduce, NULL, r, ranks};
    CHECK(pthread_create(&running[count], NULL, run_rank_thread, &selves[count]) == 0);
    ++count;
  }
  for (int t = 0; t < count; ++t) CHECK(pthread_join(running[t], NULL) == 0);
}

static void run_job(enum placement how, int ranks) {
  const int count = process_of(how, ranks - 1) + 1 > process_of(how, ranks - 2) + 1
                        ? process_of(how, ranks - 1) + 1
                        : process_of(how, ranks - 2) + 1;
  pid_t children[most_ranks];
  place = make_meeting_place();
  for (int p = 0; p < count; ++p) {
    children[p] = fork();
    CHECK(children[p] >= 0);
    if (children[p] > 0) continue;
    run_process(how, ranks, p);
    exit(0);
  }
  for (int p = 0; p < count; ++p) check_exit(children[p]);
  munmap(place, sizeof *place);
}

static void refused(void) {
  khoroComm_t comms[2];
  CHECK_REFUSED(khoroInvalidArgument, "KHORO_DETERMINISM=exact", khoroCommInitAllHost(comms, 2));
}

static void run_default_ring(void) {
  run_threads(5, order_matters);
  run_threads(5, company_matters);
}

int main(void) {
  setenv("KHORO_ALGORITHM", "allreduce:ring", 1);
  run_in_child(run_default_ring);
  setenv("KHORO_DETERMINISM", "exact", 1);
  int cases = 0;
  for (int a = 0; a < algorithm_count; ++a) {
    unsetenv("KHORO_ALGORITHM");
    if (algorithms[a]) setenv("KHORO_ALGORITHM", algorithms[a], 1);
    if (!is_legal(algorithms[a])) {
      run_in_child(refused);
      printf("%-30s refused\n", algorithms[a]);
      fflush(stdout);
      continue;
    }
    for (int how = 0; how < placements; ++how) {
      for (int ranks = 2; ranks <= most_ranks; ++ranks, ++cases) run_job(how, ranks);
      printf("%-30s 2..9 ranks as %-9s equal bits\n", algorithms[a] ? algorithms[a] : "any",
             placement_names[how]);
      fflush(stdout);
    }
  }
  printf(
      "%d jobs, each of 3 collectives, 3 reductions, %d bf16 values alone and as the head of %d, "
      "of "
      "%d types of %d\n",
      cases, head, all, type_count, many);
  return 0;
}
