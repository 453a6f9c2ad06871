/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of khoroMemAlloc, and registrations: what is refused, what calls do with it, and what of
 * it is safe from peers that fail. */
#include "check.h"

#include <sys/prctl.h>

enum { page = 4096 };

static struct meeting_place* place;

static void* allocate(size_t bytes) {
  void* memory = NULL;
  OK(khoroMemAlloc(&memory, bytes));
  CHECK(memory && (uintptr_t)memory % page == 0);
  return memory;
}

static int all_are(const void* memory, size_t bytes, int value) {
  const unsigned char* at = memory;
  for (size_t i = 0; i < bytes; ++i)
    if (at[i] != (unsigned char)value) return 0;
  return 1;
}

static void allocation(void) {
  void* memory = &memory;
  CHECK_REFUSED(khoroInvalidArgument, "pointer is NULL", khoroMemAlloc(NULL, 8));
  CHECK_REFUSED(khoroInvalidArgument, "0 bytes", khoroMemAlloc(&memory, 0));
  CHECK_REFUSED(khoroOutOfMemory, "in a row", khoroMemAlloc(&memory, SIZE_MAX));
  CHECK_REFUSED(khoroOutOfMemory, "in a row", khoroMemAlloc(&memory, SIZE_MAX - page + 2));
  const size_t all = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
  CHECK_REFUSED(khoroOutOfMemory, "in a row", khoroMemAlloc(&memory, all + 1));
  CHECK(memory == &memory);
  OK(khoroMemFree(NULL));
  CHECK_REFUSED(khoroInvalidArgument, "nothing was allocated", khoroMemFree(&memory));
  char* const data = allocate(3 * page + 1);
  CHECK(all_are(data, 4 * page, 0)); /* whole pages */
  memset(data, 7, 4 * page);
  CHECK_REFUSED(khoroInvalidArgument, "nothing was allocated", khoroMemFree(data + page));
  OK(khoroMemFree(data));
  CHECK_REFUSED(khoroInvalidArgument, "freed already", khoroMemFree(data));
  char* const again = allocate(page);
  CHECK(all_are(again, page, 0));
  OK(khoroMemFree(again));

  enum { many = 3000 };
  static char* pieces[many];
  for (int i = 0; i < many; ++i) {
    pieces[i] = allocate(1 + (size_t)i % 9000);
    *pieces[i] = 1;
  }
  for (int i = 0; i < many; i += 2) OK(khoroMemFree(pieces[i]));
  for (int i = 1; i < many; i += 2) CHECK(*pieces[i] == 1);
  for (int i = 1; i < many; i += 2) OK(khoroMemFree(pieces[i]));

  /* Until there is no place left; nothing is touched. */
  int count = 0;
  while (khoroMemAlloc(&memory, all / 16) == khoroSuccess) pieces[count++] = memory;
  CHECK(count > 1 && count <= 17);
  CHECK_WORDS("in a row");
  for (int i = 0; i < count; ++i) OK(khoroMemFree(pieces[i]));
}

static void registration(khoroComm_t comm, int rank, int ranks) {
  char own[100];
  char* const data = allocate(4 * page);
  void* handle = own;
  (void)rank, (void)ranks;
  CHECK_REFUSED(khoroInvalidArgument, "communicator is NULL",
                khoroCommRegister(NULL, data, page, &handle));
  CHECK_REFUSED(khoroInvalidArgument, "handle is NULL", khoroCommRegister(comm, data, page, NULL));
  CHECK_REFUSED(khoroInvalidArgument, "buffer is NULL",
                khoroCommRegister(comm, NULL, page, &handle));
  CHECK_REFUSED(khoroInvalidArgument, "empty", khoroCommRegister(comm, data, 0, &handle));
  CHECK_REFUSED(khoroInvalidArgument, "not all mapped",
                khoroCommRegister(comm, data, SIZE_MAX, &handle));
  char* const hole =
      mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(hole != MAP_FAILED && munmap(hole + page, page) == 0);
  CHECK_REFUSED(khoroInvalidArgument, "not all mapped",
                khoroCommRegister(comm, hole + 1, 3 * page - 2, &handle));
  CHECK(handle == own);
  void* of_hole = NULL;
  OK(khoroCommRegister(comm, hole + 2 * page, page, &of_hole));
  OK(khoroCommDeregister(comm, of_hole));
  CHECK(munmap(hole, page) == 0 && munmap(hole + 2 * page, page) == 0);

  void *first = NULL, *second = NULL, *third = NULL;
  OK(khoroCommRegister(comm, data, 4 * page, &first));
  OK(khoroCommRegister(comm, data + page + 1, 1, &second)); /* a part of it once more */
  OK(khoroCommRegister(comm, own, sizeof own, &third));
  CHECK(first != second && second != third && first != third);
  CHECK_REFUSED(khoroInvalidUsage, "registered", khoroMemFree(data));
  OK(khoroCommDeregister(comm, first));
  CHECK_REFUSED(khoroInvalidUsage, "registered", khoroMemFree(data));
  for (int i = 0; i < 2; ++i)
    CHECK_REFUSED(khoroInvalidArgument, "no registration", khoroCommDeregister(comm, first));
  CHECK_REFUSED(khoroInvalidArgument, "no registration", khoroCommDeregister(comm, NULL));
  CHECK_REFUSED(khoroInvalidArgument, "no registration", khoroCommDeregister(comm, data));

  khoroComm_t other[2];
  OK(khoroCommInitAllHost(other, 2));
  CHECK_REFUSED(khoroInvalidArgument, "no registration", khoroCommDeregister(other[0], second));
  OK(khoroCommDeregister(comm, second));
  OK(khoroCommDeregister(comm, third));
  OK(khoroCommRegister(other[1], data, 8, &first));
  OK(khoroCommAbort(other[0]));
  CHECK_RESULT(khoroAborted, khoroCommRegister(other[0], data, 8, &second));
  OK(khoroCommDestroy(other[0]));
  CHECK_REFUSED(khoroInvalidUsage, "registered", khoroMemFree(data));
  OK(khoroCommDestroy(other[1])); /* ends its registrations */
  CHECK_REFUSED(khoroInvalidArgument, "stale", khoroCommDeregister(other[1], first));
  OK(khoroMemFree(data));
}

static int32_t term(int rank, size_t i) { return (int32_t)(i * 7919 + (size_t)rank * 104729); }

/* Whose memory a rank's buffers are differs from rank to rank. */
static void sum(khoroComm_t comm, int rank, int ranks, int kinds, size_t count, size_t shift) {
  const size_t bytes = 4 * count, guard = 64, room = shift + bytes + 2 * guard;
  const int kind = kinds >> (2 * (rank % 2));
  char* const in = kind & 1 ? allocate(room) : malloc(room);
  char* const out = kind & 2 ? allocate(room) : malloc(room);
  memset(in, 0x5a, room);
  memset(out, 0x5a, room);
  char *const from = in + guard + shift, *const to = out + guard + shift;
  for (int in_place = 0; in_place < 2; ++in_place) {
    for (size_t i = 0; i < count; ++i) {
      const int32_t mine = term(rank, i);
      memcpy((in_place ? to : from) + 4 * i, &mine, 4);
    }
    OK(khoroAllReduce(in_place ? to : from, to, count, khoroInt32, khoroSum, comm, NULL));
    for (size_t i = 0; i < count; ++i) {
      uint32_t wanted = 0;
      int32_t got, mine;
      for (int r = 0; r < ranks; ++r) wanted += (uint32_t)term(r, i);
      memcpy(&got, to + 4 * i, 4);
      memcpy(&mine, from + 4 * i, 4);
      CHECK((uint32_t)got == wanted && mine == term(rank, i));
    }
    CHECK(all_are(in, guard + shift, 0x5a) && all_are(from + bytes, guard, 0x5a));
    CHECK(all_are(out, guard + shift, 0x5a) && all_are(to + bytes, guard, 0x5a));
  }
  if (kind & 1)
    OK(khoroMemFree(in));
  else
    free(in);
  if (kind & 2)
    OK(khoroMemFree(out));
  else
    free(out);
}

static void sums(khoroComm_t comm, int rank, int ranks) {
  const size_t counts[] = {1, 1000, 1025, 16384, 16411, 100003, 600000};
  for (int kinds = 0; kinds < 16; ++kinds) {
    if (ranks > 2 && kinds != 6 && kinds != 9 && kinds != 15) continue;
    for (size_t k = 0; k < sizeof counts / sizeof *counts; ++k)
      if (kinds == 15 || k < 5) sum(comm, rank, ranks, kinds, counts[k], k % 3);
  }
}

/* Blocks that go from rank to rank, a ring of messages, and one rank's words to all. */
static void moves(khoroComm_t comm, int rank, int ranks) {
  const size_t count = 30011;
  const size_t whole = count * (size_t)ranks;
  int32_t* const in = allocate(4 * whole);
  int32_t* const out = allocate(4 * whole);
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < whole; ++i) in[i] = term(rank, i) + round;
    OK(khoroAlltoAll(in, out, count, khoroInt32, comm, NULL));
    for (size_t i = 0; i < whole; ++i)
      CHECK(out[i] == term((int)(i / count), (size_t)rank * count + i % count) + round);
    OK(khoroAllGather(in, out, count, khoroInt32, comm, NULL));
    for (size_t i = 0; i < whole; ++i) CHECK(out[i] == term((int)(i / count), i % count) + round);
    OK(khoroReduceScatter(in, out, count, khoroInt32, khoroMax, comm, NULL));
    for (size_t i = 0; i < count; ++i) {
      int32_t most = INT32_MIN;
      for (int r = 0; r < ranks; ++r) {
        const int32_t theirs = term(r, (size_t)rank * count + i) + round;
        if (theirs > most) most = theirs;
      }
      CHECK(out[i] == most);
    }
    if (rank == round % ranks) memcpy(out, in, 4 * whole);
    OK(khoroBroadcast(out, out, whole, khoroInt32, round % ranks, comm, NULL));
    for (size_t i = 0; i < whole; ++i) CHECK(out[i] == term(round % ranks, i) + round);
    OK(khoroGroupStart());
    OK(khoroSend(in, whole, khoroInt32, (rank + 1) % ranks, comm, NULL));
    OK(khoroRecv(out, whole, khoroInt32, (rank + ranks - 1) % ranks, comm, NULL));
    OK(khoroGroupEnd());
    for (size_t i = 0; i < whole; ++i) CHECK(out[i] == term((rank + ranks - 1) % ranks, i) + round);
  }
  OK(khoroMemFree(in));
  OK(khoroMemFree(out));
}

static void pass_on(khoroComm_t comm, int rank, float* data, size_t count) {
  if (rank == 0) OK(khoroSend(data, count, khoroFloat32, 1, comm, NULL));
  if (rank == 1) OK(khoroRecv(data, count, khoroFloat32, 0, comm, NULL));
}

/* What is read in place is not sent: messages of it, and what long reductions pass on. */
static void is_not_copied(khoroComm_t comm, int rank, int ranks) {
  const size_t count = 1 << 20, bytes = 4 * count;
  float *const data = allocate(bytes), *const out = allocate(bytes);
  const char* const transport = getenv("KHORO_TRANSPORT");
  const int reads = !transport || strcmp(transport, "shm") == 0;
  (void)ranks;
  /* What is sent while the peer opens its end is copied. */
  OK(khoroAllReduce(data, data, count, khoroFloat32, khoroSum, comm, NULL));
  pass_on(comm, rank, data, count);
  uint64_t before = statistics_of(comm).bytesSent;
  pass_on(comm, rank, data, count);
  CHECK(statistics_of(comm).bytesSent - before < bytes / 64 || (rank == 0 && !reads));
  for (int in_place = 0; in_place < 2; ++in_place) {
    before = statistics_of(comm).bytesSent;
    OK(khoroAllReduce(data, in_place ? data : out, count, khoroFloat32, khoroSum, comm, NULL));
    CHECK(statistics_of(comm).bytesSent - before < bytes / 64 || !reads);
  }
  OK(khoroMemFree(data));
  OK(khoroMemFree(out));
}

/* A child has the same memory, and cannot free it; its parent goes on. */
static void forked(khoroComm_t comm, int rank, int ranks) {
  volatile char* const data = allocate(page);
  void* handle = NULL;
  OK(khoroCommRegister(comm, (char*)data, page, &handle));
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    void* memory = NULL;
    data[1] = 5;
    CHECK_REFUSED(khoroInvalidUsage, "forked", khoroMemFree((char*)data));
    CHECK_REFUSED(khoroInvalidUsage, "forked", khoroMemAlloc(&memory, 8));
    CHECK_REFUSED(khoroInvalidUsage, "forked", khoroCommDeregister(comm, handle));
    CHECK_REFUSED(khoroInvalidUsage, "forked", khoroCommRegister(comm, (char*)data, page, &memory));
    _exit(0);
  }
  check_exit(child);
  CHECK(data[1] == 5);
  OK(khoroCommDeregister(comm, handle));
  OK(khoroMemFree((char*)data));
  sum(comm, rank, ranks, 15, 50000, 0);
}

/* Rank 1 dies in a loop of long calls: the others have their memory, and use it again. */
static void killed(khoroComm_t comm, int rank, int ranks) {
  const size_t count = 1 << 20;
  float* const data = allocate(4 * count);
  (void)ranks;
  khoroResult_t result = khoroSuccess;
  while (result == khoroSuccess) {
    result = khoroAllReduce(data, data, count, khoroFloat32, khoroMax, comm, NULL);
    set_flag(place, rank);
  }
  CHECK(result == khoroPeerDied);
  memset(data, 0x77, 4 * count);
  sleep_ms(20);
  CHECK(all_are(data, 4 * count, 0x77));
  OK(khoroMemFree(data));
}

/* Stops this process when it is called for the third time, in the middle of a message. */
static int calls_until_stop = -1;

static void stopping_sum(void* context, const void* in, void* inout, size_t count,
                         khoroDataType_t type) {
  (void)context, (void)type;
  if (calls_until_stop > 0 && --calls_until_stop == 0) kill(getpid(), SIGSTOP);
  for (size_t i = 0; i < count; ++i) ((uint32_t*)inout)[i] += ((const uint32_t*)in)[i];
}

enum { stops = 10, failed = 11, overwritten = 12, woken = 13 };
static size_t stopped_count; /* one message, which the call could end with, or several */

static khoroResult_t stoppable_sum(khoroComm_t comm, const int32_t* in, int32_t* out) {
  khoroRedOp_t op;
  OK(khoroRedOpCreateUser(&op, "stopping sum", stopping_sum, NULL, 1, comm));
  return khoroAllReduce(in, out, stopped_count, khoroInt32, op, comm, NULL);
}

static void check_sum(const int32_t* out) {
  for (size_t i = 0; i < stopped_count; ++i)
    CHECK((uint32_t)out[i] == (uint32_t)term(0, i) + (uint32_t)term(1, i));
}

static khoroUniqueId second_id(int makes_it) {
  static struct meeting_place* second;
  second = (struct meeting_place*)((char*)place + sizeof *place);
  return id_at(second, makes_it);
}

/* Once rank 0 is stopped. */
static void* aborting(void* comm) {
  char path[64], text[256] = "";
  snprintf(path, sizeof path, "/proc/%d/stat", place->flags[20]);
  const double end = seconds() + 20;
  for (const char* state = text; *state != 'T'; sleep_ms(5)) {
    FILE* const file = fopen(path, "r");
    CHECK(file && fgets(text, sizeof text, file) && seconds() < end);
    fclose(file);
    state = strrchr(text, ')') + 2;
  }
  OK(khoroCommAbort(comm));
  return NULL;
}

/* Rank 0 is stopped in the middle of a message that it writes to, or reads from, memory of rank 1,
 * which gives up, uses its memory for something else, and has it go on. */
static void stopped(khoroComm_t comm, int rank, int aborts) {
  int32_t* const in = allocate(4 * stopped_count);
  int32_t* const out = allocate(4 * stopped_count);
  for (size_t i = 0; i < stopped_count; ++i) in[i] = term(rank, i);
  OK(stoppable_sum(comm, in, out));
  check_sum(out);
  if (rank == 0) {
    CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0); /* should nobody wake it */
    place->flags[20] = getpid();
    calls_until_stop = 3;
    set_flag(place, stops);
    const khoroResult_t result = stoppable_sum(comm, in, out);
    CHECK(result == (aborts ? khoroAborted : khoroTimeout));
    CHECK(calls_until_stop == 0); /* it was in the middle */
    set_flag(place, failed);
    await_flag(place, overwritten);
  } else {
    OK(khoroCommSetDeadline(comm, aborts ? 20000 : 1500));
    await_flag(place, stops);
    pthread_t thread;
    if (aborts) CHECK(pthread_create(&thread, NULL, aborting, comm) == 0);
    const khoroResult_t result = stoppable_sum(comm, in, out);
    if (aborts) CHECK(pthread_join(thread, NULL) == 0);
    CHECK(result == (aborts ? khoroAborted : khoroTimeout));
    memset(in, 0x66, 4 * stopped_count);
    memset(out, 0x77, 4 * stopped_count);
    CHECK(kill(place->flags[20], SIGCONT) == 0);
    await_flag(place, failed);
    CHECK(all_are(in, 4 * stopped_count, 0x66));
    CHECK(all_are(out, 4 * stopped_count, 0x77));
    set_flag(place, overwritten);
  }
  /* The same memory in another communicator. */
  khoroComm_t next;
  OK(khoroCommInitRank(&next, 2, second_id(rank == 0), rank));
  for (size_t i = 0; i < stopped_count; ++i) in[i] = term(rank, i);
  OK(stoppable_sum(next, in, out));
  check_sum(out);
  OK(khoroCommDestroy(next));
  OK(khoroMemFree(in));
  OK(khoroMemFree(out));
}

static void stopped_until_timeout(khoroComm_t comm, int rank, int ranks) {
  (void)ranks;
  stopped(comm, rank, 0);
}

static void stopped_until_abort(khoroComm_t comm, int rank, int ranks) {
  (void)ranks;
  stopped(comm, rank, 1);
}

static void run_stopped(void) {
  const char* const transport = getenv("KHORO_TRANSPORT");
  if (transport && strcmp(transport, "tcp") == 0) return; /* nothing is lent, nor offered */
  for (int round = 0; round < 4; ++round) {
    const int aborts = round % 2;
    stopped_count = round < 2 ? 1 << 14 : 1 << 18;
    place =
        mmap(NULL, 2 * sizeof *place, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(place != MAP_FAILED);
    run_processes_at(place, 2, aborts ? stopped_until_abort : stopped_until_timeout);
    munmap(place, 2 * sizeof *place);
  }
}

#ifdef KHORO_TEST_SWITCHES
/* Rank 0 writes every sum into the memory of rank 1, which sends it back. */
static const char plan_of_puts[] =
    "plan allreduce.puts ranks 2 chunks 1\n"
    "rank 0\n"
    "  lane 0\n"
    "    recv 1 | reduce input[0] | put 1\n"
    "    recv 1 | write output[0]\n"
    "rank 1\n"
    "  lane 0\n"
    "    offer output[0] to 0\n"
    "    read input[0] | send 0\n"
    "    take 0 | send 0\n";

static void with_puts(void) {
  char path[] = "/tmp/khoro-test-plan-XXXXXX";
  const int descriptor = mkstemp(path);
  CHECK(descriptor >= 0 && write(descriptor, plan_of_puts, sizeof plan_of_puts - 1) > 0);
  CHECK(close(descriptor) == 0);
  setenv("KHORO_TEST_PLAN_FILE", path, 1);
  run_processes(2, sums);
  run_stopped();
  unsetenv("KHORO_TEST_PLAN_FILE");
  CHECK(unlink(path) == 0);
}
#endif

int main(void) {
  /* Processes first: this one has not used Khoro yet. */
  for (int ranks = 2; ranks <= 4; ++ranks) run_processes(ranks, sums);
  run_processes(3, moves);
  run_processes(2, is_not_copied);
  run_processes(2, forked);
  for (int round = 0; round < 3; ++round) {
    place = make_meeting_place();
    run_and_kill_rank_1(place, 2 + round, killed, 10 * round);
  }
  run_stopped();
#ifdef KHORO_TEST_SWITCHES
  with_puts();
#endif
  allocation();
  run_threads(1, registration);
  run_threads(3, sums);
  run_threads(2, moves);
  return 0;
}
