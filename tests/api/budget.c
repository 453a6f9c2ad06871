/* SPDX-License-Identifier: Apache-2.0 */
/* What communicators hold: little before the first message above 64 KiB, never more than they may,
 * as much as they say, and as the system says; and no descriptors. */
#include "collective_cases.h"
#include "usage.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { page = 4096, kib = 1024, mib = 1024 * kib };

static khoroStatistics_t ask(khoroComm_t comm) {
  const khoroStatistics_t statistics = statistics_of(comm);
  CHECK(statistics.bytesHeld == statistics.recordBytes + statistics.channelBytes +
                                    statistics.partialBytes + statistics.keptBytes +
                                    statistics.programBytes);
  return statistics;
}

/* Of the memory that `rank` shares, as the system counts its pages. The process must be of one
 * communicator. */
static uint64_t resident(int rank) {
  char line[512], name[64];
  unsigned long first = 0, last = 0;
  FILE* maps = fopen("/proc/self/maps", "r");
  CHECK(maps);
  snprintf(name, sizeof name, "/memfd:khoro rank %d (deleted)", rank);
  while (fgets(line, sizeof line, maps))
    if (strstr(line, name)) CHECK(sscanf(line, "%lx-%lx", &first, &last) == 2);
  fclose(maps);
  CHECK(last > first);
  const size_t pages = (last - first) / page;
  unsigned char* in_memory = malloc(pages);
  CHECK(mincore((void*)first, last - first, in_memory) == 0);
  uint64_t count = 0;
  for (size_t i = 0; i < pages; ++i) count += in_memory[i] & 1;
  free(in_memory);
  /* Who may open it again can ask for its blocks. */
  struct stat status;
  snprintf(name, sizeof name, "/proc/self/map_files/%lx-%lx", first, last);
  if (stat(name, &status) == 0) CHECK((uint64_t)status.st_blocks * 512 == count * page);
  return count * page;
}

static void check_held(khoroComm_t comm, int rank, uint64_t most) {
  const khoroStatistics_t now = ask(comm);
  OK(khoroBarrier(comm, NULL)); /* nobody sends any more */
  CHECK(now.recordBytes + now.channelBytes <= resident(rank));
  const khoroStatistics_t then = ask(comm);
  const uint64_t pages = resident(rank);
  if (then.recordBytes + then.channelBytes != pages || then.bytesHeld > most) {
    fprintf(stderr, "rank %d: %lu for records, %lu for channels, %lu for partial results; %lu\n",
            rank, (unsigned long)then.recordBytes, (unsigned long)then.channelBytes,
            (unsigned long)then.partialBytes, (unsigned long)pages);
    abort();
  }
  OK(khoroBarrier(comm, NULL));
}

/* All collectives, whose messages have up to `count` elements. */
static void collectives(khoroComm_t comm, int rank, int ranks, size_t count) {
  const khoroDataType_t type = khoroInt32;
  const size_t unequal_count = count > 8 ? count - 8 : count; /* to which they add the rank */
  allreduce_case(comm, rank, ranks, type, khoroSum, count);
  allreduce_case(comm, rank, ranks, type, khoroAvg, count);
  reducescatter_case(comm, rank, ranks, type, khoroMax, count);
  reducescatterv_case(comm, rank, ranks, type, khoroSum, unequal_count);
  allgather_case(comm, rank, ranks, type, count);
  allgatherv_case(comm, rank, ranks, type, unequal_count);
  alltoall_case(comm, rank, ranks, type, count);
  alltoallv_case(comm, rank, ranks, type, unequal_count);
  for (int root = 0; root < ranks; ++root) {
    broadcast_case(comm, rank, root, type, count);
    reduce_case(comm, rank, ranks, root, type, khoroSum, count);
    gather_case(comm, rank, ranks, root, type, count);
    gatherv_case(comm, rank, ranks, root, type, unequal_count);
    scatter_case(comm, rank, ranks, root, type, count);
    scatterv_case(comm, rank, ranks, root, type, unequal_count);
  }
}

/* Messages of `count` elements from every rank to every other one, with a tag and without, in a
 * group, and from senders that run ahead. */
static void messages(khoroComm_t comm, int rank, int ranks, size_t count) {
  int32_t *out = calloc(count, 4), *in = calloc(count * (size_t)ranks, 4);
  for (size_t i = 0; i < count; ++i) out[i] = rank * 100 + (int)(i % 91);
  for (int tagged = 0; tagged < 2; ++tagged) {
    memset(in, 0, count * 4 * (size_t)ranks);
    OK(khoroGroupStart());
    for (int peer = 0; peer < ranks; ++peer) {
      int32_t* from_peer = in + count * (size_t)peer;
      if (peer == rank) continue;
      if (tagged) {
        OK(khoroSendTag(out, count, khoroInt32, peer, 5, comm, NULL));
        OK(khoroRecvTag(from_peer, count, khoroInt32, peer, 5, comm, NULL));
      } else {
        OK(khoroSend(out, count, khoroInt32, peer, comm, NULL));
        OK(khoroRecv(from_peer, count, khoroInt32, peer, comm, NULL));
      }
    }
    OK(khoroGroupEnd());
    for (int peer = 0; peer < ranks; ++peer)
      for (size_t i = 0; peer != rank && i < count; ++i)
        CHECK(in[count * (size_t)peer + i] == peer * 100 + (int)(i % 91));
  }
  for (int sender = 0; sender < ranks; ++sender)
    for (int round = 0; round < 12; ++round) {
      if (rank == sender) OK(khoroSend(out, count, khoroInt32, (rank + 1) % ranks, comm, NULL));
      if (rank != (sender + 1) % ranks) continue;
      if (round == 0) sleep_ms(2);
      OK(khoroRecv(in, count, khoroInt32, sender, comm, NULL));
      for (size_t i = 0; i < count; ++i) CHECK(in[i] == sender * 100 + (int)(i % 91));
    }
  free(out), free(in);
}

static void streams(khoroComm_t comm, int rank, int ranks, size_t count) {
  khoroStream_t stream;
  int32_t *out = calloc(count, 4), *in = calloc(count, 4);
  for (size_t i = 0; i < count; ++i) out[i] = rank + (int)(i % 91);
  OK(khoroStreamCreate(&stream));
  for (int i = 0; i < 3; ++i)
    OK(khoroAllReduce(out, in, count, khoroInt32, khoroSum, comm, stream));
  OK(khoroStreamSynchronize(stream));
  for (size_t i = 0; i < count; ++i)
    CHECK(in[i] == ranks * (ranks - 1) / 2 + ranks * (int)(i % 91));
  OK(khoroStreamDestroy(stream));
  free(out), free(in);
}

static const size_t small_counts[] = {1, 17, 1000, 2048, 2049, 5000, 16384};
enum { small_count_count = 7 };
static const uint64_t small_budget = 4 * mib;

static void small_messages_need_little(khoroComm_t comm, int rank, int ranks) {
  check_held(comm, rank, 128 * kib);
  for (int round = 0; round < 2; ++round)
    for (int c = 0; c < small_count_count; ++c) {
      collectives(comm, rank, ranks, small_counts[c]);
      messages(comm, rank, ranks, small_counts[c]);
      streams(comm, rank, ranks, small_counts[c]);
    }
  check_held(comm, rank, small_budget);
}

static void memory_grows_with_messages(khoroComm_t comm, int rank, int ranks) {
  const uint64_t before = ask(comm).channelBytes;
  for (int round = 0; round < 3; ++round) {
    for (int c = 0; c < small_count_count; ++c) collectives(comm, rank, ranks, small_counts[c]);
    if (round == 0) check_held(comm, rank, small_budget);
    /* Each of these is the first of its way that is large. */
    const size_t large = 40000 + 100000 * (size_t)round;
    if (round == 0) streams(comm, rank, ranks, large);
    if (round == 1) messages(comm, rank, ranks, large);
    if (round == 2) collectives(comm, rank, ranks, large);
    check_held(comm, rank, 64 * mib);
  }
  CHECK(ask(comm).channelBytes >= before + 128 * kib);
  for (int c = 0; c < small_count_count; ++c) messages(comm, rank, ranks, small_counts[c]);
  check_held(comm, rank, 64 * mib);
}

static void a_limit_makes_messages_narrow(khoroComm_t comm, int rank, int ranks) {
  for (int round = 0; round < 2; ++round) {
    collectives(comm, rank, ranks, 1000);
    messages(comm, rank, ranks, 100000);
    streams(comm, rank, ranks, 300000);
    collectives(comm, rank, ranks, 50000);
  }
  CHECK(ask(comm).channelBytes <= 1 * mib);
  check_held(comm, rank, 2 * mib);
}

static void a_limit_that_is_too_low_is_refused(void) {
  khoroComm_t comms[8];
  setenv("KHORO_BUFFER_BYTES", "512K", 1);
  CHECK_REFUSED(khoroInvalidArgument, "KHORO_BUFFER_BYTES=524288: the channels of 8 ranks need",
                khoroCommInitAllHost(comms, 8));
  unsetenv("KHORO_BUFFER_BYTES");
}

/* Many communicators of one process, or of several. */
enum { communicators = 200, members = 4 };
static const uint64_t memory_for_all = (uint64_t)4096 * mib;

struct crowd {
  struct meeting_place* places[communicators];
  volatile uint64_t kilobytes[members]; /* by process */
};
static struct crowd* crowd;

static void limit_descriptors(void) {
  const struct rlimit limit = {1024, 1024};
  CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

/* Shared pages count for each process in part. */
static uint64_t kilobytes_of_this_process(void) {
  char line[256];
  unsigned long kilobytes = 0;
  FILE* rollup = fopen("/proc/self/smaps_rollup", "r");
  CHECK(rollup);
  while (fgets(line, sizeof line, rollup))
    if (sscanf(line, "Pss: %lu kB", &kilobytes) == 1) break;
  fclose(rollup);
  CHECK(kilobytes > 0);
  return kilobytes;
}

static void use(khoroComm_t comm, int rank, int number) {
  const int is_large = number % 10 == 0;
  allreduce_case(comm, rank, members, khoroInt32, khoroSum, is_large ? 262144 : 16384);
  alltoall_case(comm, rank, members, khoroInt32, 1000);
  allgather_case(comm, rank, members, khoroInt32, 4096);
  broadcast_case(comm, rank, number % members, khoroInt32, 16384);
  messages(comm, rank, members, 16384);
}

static void one_of_a_crowd(khoroComm_t none, int rank, int ranks) {
  static khoroComm_t comms[members][communicators];
  (void)none;
  for (int i = 0; i < communicators; ++i) {
    comms[rank][i] = join_at(crowd->places[i], ranks, rank);
    use(comms[rank][i], rank, i);
  }
  OK(khoroBarrier(comms[rank][0], NULL));
  /* The meetings are over soon; sleepers have some, and each other process, but no communicator. */
  for (int i = 0; i < 500 && descriptors() > 64; ++i) sleep_ms(10);
  CHECK(descriptors() <= 64);
  crowd->kilobytes[rank] = kilobytes_of_this_process();
  OK(khoroBarrier(comms[rank][0], NULL));
  uint64_t held = 0;
  for (int i = 0; i < communicators; ++i) held += ask(comms[rank][i]).bytesHeld;
  CHECK(held <= memory_for_all / members);
  for (int i = 0; i < communicators; ++i) OK(khoroCommDestroy(comms[rank][i]));
}

static void a_crowd_fits(int processes) {
  for (int i = 0; i < communicators; ++i) crowd->places[i] = make_meeting_place();
  run_joiners(processes, members / processes, one_of_a_crowd);
  uint64_t sum = 0;
  for (int rank = 0; rank < members; rank += members / processes) sum += crowd->kilobytes[rank];
  fprintf(stderr, "%d communicators of %d ranks in %d processes: %lu MiB\n", communicators, members,
          processes, (unsigned long)(sum / kib));
  CHECK(sum <= memory_for_all / kib);
  for (int i = 0; i < communicators; ++i) munmap(crowd->places[i], sizeof *crowd->places[i]);
}

int main(void) {
  limit_descriptors();
  crowd = mmap(NULL, sizeof *crowd, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(crowd != MAP_FAILED);
  /* Processes first: this one has not used Khoro yet. */
  run_processes(8, small_messages_need_little);
  run_processes(3, memory_grows_with_messages);
  setenv("KHORO_BUFFER_BYTES", "1M", 1);
  run_processes(4, a_limit_makes_messages_narrow);
  unsetenv("KHORO_BUFFER_BYTES");
  a_crowd_fits(members);
  a_crowd_fits(members / 2);
  a_limit_that_is_too_low_is_refused();
  return 0;
}
