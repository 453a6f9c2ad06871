/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that do not make the same calls: every way, whichever rank is odd, whatever algorithms the
 * two sides choose, on 2 to 5 ranks, as processes and as threads. Every rank must be told soon and
 * in words that name who called what; nothing may hang, and nothing wrong be called success.
 *
 * usage: mismatches [--all] [CASE]    without --all, a selection that still holds every way and
 * rank count; CASE is part of the name of the only cases to run. With KHORO_MEMORY=virtual ranks
 * are on GPUs.
 */
#include "mismatch_block_cases.h"
#include "mismatch_cases.h"
#include "mismatch_message_cases.h"

enum { most_jobs = 40000, at_once = 20, most_lines = 6, line_bytes = 900, longest_job_s = 100 };
static const double promised = 2, allowed = 15; /* seconds; what is measured depends on the load */

/* What the ranks of a job tell, in memory that they share with the driver. */
struct story {
  int arrived[2], failed, lines, done;
  double began[most_ranks], told[most_ranks];
  khoroResult_t result[most_ranks];
  char words[most_ranks][line_bytes];
  double line_time[most_lines];
  char line[most_lines][line_bytes];
};

static struct job jobs[most_jobs];
static int job_count;
static struct story* stories;

/* In a process of a job. */
static const struct job* job;
static struct story* story;

static const char* only = "";

static void add_job(const struct job* added) {
  if (!strstr(added->name, only)) return;
  CHECK(job_count < most_jobs);
  jobs[job_count++] = *added;
}

static void keep_line(void* context, int level, const char* line) {
  (void)context;
  if (level != 2) return;
  const int at = __atomic_fetch_add(&story->lines, 1, __ATOMIC_RELAXED);
  if (at >= most_lines) return;
  story->line_time[at] = seconds();
  snprintf(story->line[at], line_bytes, "%s", line);
}

static void meet(int which) {
  __atomic_fetch_add(&story->arrived[which], 1, __ATOMIC_ACQ_REL);
  while (__atomic_load_n(&story->arrived[which], __ATOMIC_ACQUIRE) < job->ranks) sleep_ms(1);
}

/* Zeros where calls of the communicator may have them. Of tens of megabytes most calls use little:
 * on hosts they are mapped, as MALLOC_PERTURB_ lets the allocator touch all that it gives. */
static void* take_memory(khoroComm_t comm, size_t bytes) {
  khoroMemory_t kind;
  int device;
  void* memory;
  OK(khoroCommDevice(comm, &kind, &device));
  if (kind == khoroMemoryHost) {
    memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
  } else {
    OK(khoroDeviceAlloc(&memory, bytes, kind, device));
  }
  return memory;
}

static void give_back(khoroComm_t comm, void* memory, size_t bytes) {
  khoroMemory_t kind;
  OK(khoroCommDevice(comm, &kind, NULL));
  if (kind == khoroMemoryHost)
    CHECK(munmap(memory, bytes) == 0);
  else
    OK(khoroDeviceFree(memory));
}

/* Between memory of the host and that which take_memory gave. */
static void copy(khoroComm_t comm, void* to, const void* from, size_t bytes) {
  khoroMemory_t kind;
  int device;
  khoroStream_t stream;
  OK(khoroCommDevice(comm, &kind, &device));
  if (kind == khoroMemoryHost) {
    memcpy(to, from, bytes);
    return;
  }
  OK(khoroDeviceStreamCreate(&stream, kind, device));
  OK(khoroDeviceCopy(to, from, bytes, stream));
  OK(khoroStreamSynchronize(stream));
  OK(khoroStreamDestroy(stream));
}

static khoroResult_t make_calls(khoroComm_t* comms, int rank, khoroComm_t* last) {
  const size_t bytes = (size_t)most_elements * 8 * most_ranks;
  char *in = take_memory(comms[0], bytes), *out = take_memory(comms[0], bytes);
  khoroResult_t result = khoroSuccess;
  if (job->grouped) OK(khoroGroupStart());
  for (int i = 0; i < job->calls[rank] && result == khoroSuccess; ++i) {
    const struct call* call = &job->script[rank][i];
    *last = comms[call->comm];
    result = make_call(call, *last, in, out);
    if (call->no_buffers) {
      CHECK(result == khoroInvalidArgument);
      result = khoroSuccess; /* it poisons nothing, and peers learn of it */
    }
  }
  if (job->grouped) result = khoroGroupEnd();
  give_back(comms[0], in, bytes);
  give_back(comms[0], out, bytes);
  return result;
}

static void call_wrongly(khoroComm_t* comms, int rank) {
  khoroComm_t last = comms[0];
  for (int i = 0; i < job->communicators; ++i)
    if (job->deadline_ms) OK(khoroCommSetDeadline(comms[i], job->deadline_ms));
  meet(0);
  story->began[rank] = seconds();
  khoroResult_t result = make_calls(comms, rank, &last);
  /* What needed nothing from peers succeeds, and this rank hears of it later. */
  const double until = story->began[rank] + allowed + job->deadline_ms / 1000.0;
  for (khoroResult_t error = result; result == khoroSuccess && seconds() < until;) {
    OK(khoroCommGetAsyncError(last, &error));
    if (error != khoroSuccess) result = khoroBarrier(last, NULL);
    sleep_ms(5);
  }
  story->told[rank] = seconds();
  story->result[rank] = result;
  snprintf(story->words[rank], line_bytes, "%s", khoroGetLastError(last));
  meet(1);
}

/* Every kind of wait lasts long enough for peers to look for faults, and there is none. */
static void call_late_but_rightly(khoroComm_t comm, int rank) {
  const int ranks = job->ranks, right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
  static float in[most_ranks][20000], out[most_ranks][20000];
  story->began[rank] = seconds();
  if (rank == job->odd) sleep_ms(1300);
  OK(khoroBarrier(comm, NULL));
  for (int i = 0; i < 1000; ++i) {
    if (rank == job->odd && i == 500) sleep_ms(700);
    const size_t count = i % 3 ? 0 : 5;
    OK(khoroAllReduce(in[rank], out[rank], count, khoroFloat32, khoroSum, comm, NULL));
    OK(khoroBroadcast(in[rank], out[rank], 3, khoroFloat32, i % ranks, comm, NULL));
  }
  if (rank == job->odd) sleep_ms(1300);
  OK(khoroGroupStart());
  OK(khoroRecv(out[rank], 20000, khoroFloat32, left, comm, NULL));
  OK(khoroSend(in[rank], 20000, khoroFloat32, right, comm, NULL));
  OK(khoroGroupEnd());
  /* Around the ring: each waits for its turn. */
  if (rank == 0) OK(khoroSend(in[0], 20000, khoroFloat32, right, comm, NULL));
  OK(khoroRecv(out[rank], 20000, khoroFloat32, left, comm, NULL));
  if (rank == job->odd) sleep_ms(1300);
  if (rank != 0) OK(khoroSend(in[rank], 20000, khoroFloat32, right, comm, NULL));
  OK(khoroBarrier(comm, NULL));
  story->told[rank] = seconds();
  khoroResult_t error;
  OK(khoroCommGetAsyncError(comm, &error));
  story->result[rank] = error;
}

/* Neither the calls nor what looks after them finds a fault. */
static void call_rightly(khoroComm_t comm, int rank) {
  khoroComm_t last = comm;
  meet(0);
  story->began[rank] = seconds();
  khoroResult_t result = make_calls(&comm, rank, &last);
  sleep_ms(1300);
  if (result == khoroSuccess) result = khoroBarrier(comm, NULL);
  story->told[rank] = seconds();
  story->result[rank] = result;
  snprintf(story->words[rank], line_bytes, "%s", khoroGetLastError(comm));
}

static void play_rank(khoroComm_t* comms, int rank) {
  const size_t bytes = 2 * sizeof(float);
  float one = 1, sum = 0, *warm = take_memory(comms[0], bytes);
  copy(comms[0], warm, &one, sizeof one);
  for (int i = 0; i < job->warm_calls; ++i) {
    OK(khoroAllReduce(warm, warm + 1, 1, khoroFloat32, khoroSum, comms[0], NULL));
    copy(comms[0], &sum, warm + 1, sizeof sum);
    CHECK(sum == (float)job->ranks);
  }
  give_back(comms[0], warm, bytes);
  if (job->expectation != succeeds)
    call_wrongly(comms, rank);
  else if (job->late)
    call_late_but_rightly(comms[0], rank);
  else
    call_rightly(comms[0], rank);
}

struct thread_self {
  khoroComm_t comms[2];
  int rank;
};

static void* play_thread(void* argument) {
  struct thread_self* self = argument;
  play_rank(self->comms, self->rank);
  return NULL;
}

static void play_as_threads(void) {
  khoroComm_t made[2][most_ranks];
  struct thread_self selves[most_ranks];
  pthread_t threads[most_ranks];
  for (int i = 0; i < job->communicators; ++i)
    OK(getenv("KHORO_MEMORY") ? khoroCommInitAll(made[i], job->ranks, NULL)
                              : khoroCommInitAllHost(made[i], job->ranks));
  for (int r = 0; r < job->ranks; ++r) {
    selves[r].rank = r;
    for (int i = 0; i < job->communicators; ++i) selves[r].comms[i] = made[i][r];
    CHECK(pthread_create(&threads[r], NULL, play_thread, &selves[r]) == 0);
  }
  for (int r = 0; r < job->ranks; ++r) CHECK(pthread_join(threads[r], NULL) == 0);
  for (int i = 0; i < job->communicators; ++i)
    for (int r = 0; r < job->ranks; ++r) OK(khoroCommDestroy(made[i][r]));
}

static void play_as_processes(void) {
  struct meeting_place* places[2];
  pid_t children[most_ranks];
  for (int i = 0; i < job->communicators; ++i) places[i] = make_meeting_place();
  for (int r = 0; r < job->ranks; ++r) {
    children[r] = fork();
    CHECK(children[r] >= 0);
    if (children[r] > 0) continue;
    khoroComm_t comms[2];
    OK(khoroSetLogCallback(keep_line, NULL));
    for (int i = 0; i < job->communicators; ++i) comms[i] = join_at(places[i], job->ranks, r);
    play_rank(comms, r);
    for (int i = 0; i < job->communicators; ++i) OK(khoroCommDestroy(comms[i]));
    exit(0);
  }
  for (int r = 0; r < job->ranks; ++r) check_exit(children[r]);
}

static pid_t start_job(int number) {
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child > 0) {
    setpgid(child, child);
    return child;
  }
  setpgid(0, 0);
  job = &jobs[number];
  story = &stories[number];
  if (job->algorithm) setenv("KHORO_ALGORITHM", job->algorithm, 1);
  if (job->slot_bytes) setenv("KHORO_SLOT_BYTES", job->slot_bytes, 1);
  if (job->tag_buffer) setenv("KHORO_TAG_BUFFER", job->tag_buffer, 1);
  if (job->threads) {
    OK(khoroSetLogCallback(keep_line, NULL));
    play_as_threads();
  } else {
    play_as_processes();
  }
  story->done = 1;
  exit(0);
}

/* What became of a job. */
struct judgement {
  double longest; /* from the last call to the last report */
  int hung, silent;
  const char* fault; /* NULL: none */
};

static int holds_all(const char* text, const struct job* of) {
  for (int i = 0; i < most_words; ++i)
    if (!strstr(text, of->words[i])) return 0;
  return 1;
}

/* When a line of the log says what it must; 0: never. */
static double told_by_log(const struct job* of, const struct story* by) {
  for (int i = 0; i < by->lines && i < most_lines; ++i)
    if (holds_all(by->line[i], of)) return by->line_time[i];
  return 0;
}

static struct judgement judge(const struct job* of, const struct story* by) {
  struct judgement judged = {0};
  double began = 0;
  const int by_log = of->expectation == warned || of->expectation == straggler;
  const khoroResult_t expected = of->expectation == reported   ? khoroMismatch
                                 : of->expectation == succeeds ? khoroSuccess
                                                               : khoroTimeout;
  if (!by->done) {
    judged.hung = 1;
    judged.fault = "it did not end well";
    return judged;
  }
  for (int r = 0; r < of->ranks; ++r) {
    if (by->began[r] > began) began = by->began[r];
    if (by->told[r] > judged.longest) judged.longest = by->told[r];
    judged.silent += by->result[r] == khoroSuccess && expected != khoroSuccess;
    if (by->result[r] != expected) judged.fault = "another result on some rank";
    if (expected != khoroSuccess && !by_log && !holds_all(by->words[r], of))
      judged.fault = "a report does not say who called what";
    if (expected != khoroSuccess && r == of->witness && !strstr(by->words[r], of->seen))
      judged.fault = "who saw it does not say what";
  }
  judged.longest -= began;
  if (by_log) {
    judged.longest = told_by_log(of, by) - began;
    if (judged.longest < 0) judged.fault = "the log does not say who waits for whom";
  }
  const double late = of->expectation == straggler   ? 10
                      : of->expectation == timed_out ? of->deadline_ms / 1000.0
                                                     : 0;
  if (judged.longest > allowed + late && expected != khoroSuccess)
    judged.fault = "it took too long";
  return judged;
}

static void print_fault(const struct job* of, const struct story* by, const char* fault) {
  fprintf(stderr, "%s, %d ranks as %s, odd rank %d, algorithm %s: %s\n", of->name, of->ranks,
          of->threads ? "threads" : "processes", of->odd, of->algorithm ? of->algorithm : "any",
          fault);
  for (int i = 0; i < most_words; ++i)
    if (of->words[i][0]) fprintf(stderr, "  expected: %s\n", of->words[i]);
  if (of->seen[0]) fprintf(stderr, "  expected of rank %d: %s\n", of->witness, of->seen);
  for (int r = 0; r < of->ranks; ++r)
    fprintf(stderr, "  rank %d after %.2f s: %s: %s\n", r, by->told[r] - by->began[r],
            khoroGetErrorString(by->result[r]), by->words[r]);
  for (int i = 0; i < by->lines && i < most_lines; ++i) fprintf(stderr, "  log: %s\n", by->line[i]);
}

static void run_jobs(void) {
  pid_t running[at_once] = {0};
  double started[at_once];
  int next = 0, open = 0;
  while (next < job_count || open > 0) {
    for (int i = 0; i < at_once; ++i) {
      if (running[i] && waitpid(running[i], NULL, WNOHANG) == running[i]) {
        kill(-running[i], SIGKILL);
        running[i] = 0;
        --open;
      }
      if (running[i] && seconds() - started[i] > longest_job_s) kill(-running[i], SIGKILL);
      if (!running[i] && next < job_count) {
        started[i] = seconds();
        running[i] = start_job(next++);
        ++open;
      }
    }
    sleep_ms(10);
  }
}

/* Jobs of one name follow each other in no order, so each name is looked for. */
static int print_table(void) {
  int faults = 0, hangs = 0, silent = 0;
  printf("%-30s %9s %5s %12s %6s %7s\n", "case", "ranks", "runs", "longest [s]", "hangs", "silent");
  for (int first = 0; first < job_count; ++first) {
    int runs = 0, known = 0, hung = 0, unheard = 0;
    double longest = 0;
    for (int i = 0; i < first && !known; ++i) known = !strcmp(jobs[i].name, jobs[first].name);
    for (int i = first; i < job_count && !known; ++i) {
      if (strcmp(jobs[i].name, jobs[first].name)) continue;
      const struct judgement judged = judge(&jobs[i], &stories[i]);
      ++runs;
      hung += judged.hung;
      unheard += judged.silent;
      if (judged.longest > longest) longest = judged.longest;
      if (judged.fault && ++faults <= 40) print_fault(&jobs[i], &stories[i], judged.fault);
    }
    if (known) continue;
    printf("%-30s %9s %5d %12.2f %6d %7d\n", jobs[first].name, "2..5", runs, longest, hung,
           unheard);
    hangs += hung;
    silent += unheard;
  }
  printf(
      "%d runs, %d hangs, %d silent successes, %d faults; promised within %.0f s of the last "
      "call, of the deadline, or of 10 s of waiting\n",
      job_count, hangs, silent, faults, promised);
  return faults;
}

typedef void (*family)(const struct variation* how, emit emit);
static const family families[] = {different_collectives,
                                  different_counts,
                                  different_types,
                                  different_ops,
                                  different_roots,
                                  different_known_blocks,
                                  different_local_blocks,
                                  different_displacements,
                                  plain_forms,
                                  different_groups,
                                  missing_calls,
                                  refused_calls,
                                  different_messages,
                                  different_tags,
                                  missing_ends,
                                  crossed_tags,
                                  messages_across_collectives,
                                  crossed_communicators,
                                  circles,
                                  stragglers,
                                  late_but_right};
enum { family_count = sizeof families / sizeof families[0] };

static const struct {
  enum kind kind;
  const char* name; /* NULL: none is forced */
  int equal_blocks; /* it can do no others */
} algorithms[] = {{allreduce, NULL, 0},
                  {allreduce, "allreduce:one-shot", 0},
                  {allreduce, "allreduce:two-shot", 0},
                  {allreduce, "allreduce:double-tree", 0},
                  {allreduce, "allreduce:ring", 0},
                  {allreduce, "allreduce:recursive-doubling", 0},
                  {allreduce, "allreduce:halving-doubling", 0},
                  {broadcast, "broadcast:binomial", 0},
                  {broadcast, "broadcast:chain", 0},
                  {allgather, "allgather:bruck", 0},
                  {reduce, "reduce:chain", 0},
                  {gather, "gather:binomial", 1},
                  {scatter, "scatter:binomial", 1},
                  {alltoall, "alltoall:pairwise", 0},
                  {alltoall, "alltoall:bruck", 1}};
enum { algorithm_count = sizeof algorithms / sizeof algorithms[0] };

/* Of a family's jobs only every so many-th, each time beginning with another. */
static int stride, phase, forced;
static void add_some(const struct job* added) {
  if (phase++ % stride == 0) add_job(added);
}

/* Some call is by the algorithm, and none that it cannot do. */
static int forces_something(const struct job* of) {
  int found = 0;
  for (int r = 0; r < of->ranks; ++r)
    for (int i = 0; i < of->calls[r]; ++i) {
      const enum kind kind = of->script[r][i].kind;
      if (plain_form(kind) != algorithms[forced].kind) continue;
      if (has_blocks(kind) && algorithms[forced].equal_blocks) return 0;
      found = 1;
    }
  return found;
}

static void add_forced(const struct job* added) {
  if (forces_something(added)) add_some(added);
}

static void enumerate(int everything) {
  for (int f = 0; f < family_count; ++f) {
    const int seldom = families[f] == stragglers || families[f] == late_but_right;
    for (int ranks = 2; ranks <= most_ranks; ++ranks)
      for (int odd = 0; odd < ranks; ++odd)
        for (int threads = 0; threads < 2; ++threads)
          for (int a = 0; a < algorithm_count; ++a) {
            const struct variation how = {ranks, odd, threads, algorithms[a].name};
            forced = a;
            stride = everything ? 1 : seldom ? 7 : 19;
            if (a == 0 || !seldom) families[f](&how, a == 0 ? add_some : add_forced);
          }
  }
}

int main(int argc, char** argv) {
  const int everything = argc > 1 && !strcmp(argv[1], "--all");
  if (argc > 1 + everything) only = argv[1 + everything];
  unsetenv("KHORO_ALGORITHM");
  enumerate(everything);
  stories = mmap(NULL, (size_t)job_count * sizeof *stories, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(stories != MAP_FAILED);
  run_jobs();
  return print_table() ? 1 : 0;
}
