/* SPDX-License-Identifier: Apache-2.0 */
/* What a user reads when something went wrong, kept word by word. KHORO_ACCEPT=1 writes the file
 * anew: read it as that user, who wants to know what to do next.
 *
 * usage: messages GOLDEN-FILE */
#include "check.h"

enum { text_bytes = 4000 };
static char* text; /* shared with the ranks; rank 0 writes it */

static void note_words(void) { snprintf(text, text_bytes, "%s", khoroGetLastError(NULL)); }

static void note_line(void* context, int level, const char* line) {
  (void)context;
  (void)level;
  if (!*text) snprintf(text, text_bytes, "%s", line);
}

static void count_differs(khoroComm_t comm, int rank, int ranks) {
  float buffer[8] = {0};
  (void)ranks;
  CHECK_RESULT(khoroMismatch, khoroAllReduce(buffer, buffer, rank == 1 ? 8 : 5, khoroFloat32,
                                             khoroSum, comm, NULL));
  if (rank == 0) note_words();
}

/* Rank 1 gives fewer than rank 0 expects. */
static void block_differs(khoroComm_t comm, int rank, int ranks) {
  float from[16] = {0}, to[16];
  const size_t gives[] = {rank == 1 ? 5 : 8, 8}, gets[] = {8, 8}, at[] = {0, 8};
  (void)ranks;
  khoroResult_t result = khoroAlltoAllV(from, gives, at, to, gets, at, khoroFloat32, comm, NULL);
  if (rank == 0) {
    CHECK(result == khoroMismatch);
    note_words();
  }
  CHECK(result == khoroMismatch || wait_while(khoroSuccess, comm) == khoroMismatch);
}

static void everybody_receives(khoroComm_t comm, int rank, int ranks) {
  float buffer[8] = {0};
  (void)ranks;
  CHECK_RESULT(khoroMismatch, khoroRecv(buffer, 8, khoroFloat32, 1 - rank, comm, NULL));
  if (rank == 0) note_words();
}

static void peer_dies(khoroComm_t comm, int rank, int ranks) {
  (void)ranks;
  OK(khoroBarrier(comm, NULL));
  if (rank == 1) {
    sleep_ms(300); /* the other one waits by now */
    _exit(0);      /* without a word to anybody */
  }
  CHECK_RESULT(khoroPeerDied, khoroBarrier(comm, NULL));
  note_words();
}

static void rank_does_not_call(khoroComm_t comm, int rank, int ranks) {
  (void)ranks;
  OK(khoroCommSetDeadline(comm, 1000));
  if (rank == 0) {
    CHECK_RESULT(khoroTimeout, khoroBarrier(comm, NULL));
    note_words();
  }
  CHECK(wait_while(khoroSuccess, comm) == khoroTimeout);
}

static void call_is_refused(khoroComm_t comm, int rank, int ranks) {
  float buffer[8] = {0};
  (void)ranks;
  if (rank == 0) {
    OK(khoroSetLogCallback(note_line, NULL));
    OK(khoroAllReduce(buffer, buffer, 8, khoroFloat32, khoroSum, comm, NULL));
    OK(khoroSetLogCallback(NULL, NULL));
    return;
  }
  CHECK_RESULT(khoroInvalidArgument,
               khoroAllReduce(NULL, buffer, 8, khoroFloat32, khoroSum, comm, NULL));
  sleep_ms(800); /* peers look after half of that */
  OK(khoroAllReduce(buffer, buffer, 8, khoroFloat32, khoroSum, comm, NULL));
}

static struct meeting_place* other_place;

static void communicators_are_crossed(khoroComm_t first, int rank, int ranks) {
  khoroComm_t second = join_at(other_place, ranks, rank);
  if (rank == 0) OK(khoroSetLogCallback(note_line, NULL));
  OK(khoroCommSetDeadline(first, 2500));
  OK(khoroCommSetDeadline(second, 2500));
  CHECK_RESULT(khoroTimeout, khoroBarrier(rank == 0 ? first : second, NULL));
  OK(khoroSetLogCallback(NULL, NULL));
  set_flag(other_place, rank);
  await_flag(other_place, 1 - rank);
  OK(khoroCommDestroy(second));
}

static void play_ranks(rank_body body) {
  other_place = make_meeting_place();
  run_processes(2, body);
}

static void ranks_are_missing(void) {
  khoroUniqueId id;
  khoroComm_t comm;
  setenv("KHORO_INIT_DEADLINE", "300ms", 1);
  OK(khoroGetUniqueId(&id));
  CHECK_RESULT(khoroTimeout, khoroCommInitRank(&comm, 4, id, 2));
  note_words();
}

static void setting_is_misspelt(void) {
  khoroUniqueId id;
  setenv("KHORO_DEADLIN", "5s", 1);
  OK(khoroSetLogCallback(note_line, NULL));
  OK(khoroGetUniqueId(&id));
}

static void setting_has_no_such_value(void) {
  khoroUniqueId id;
  setenv("KHORO_DEADLINE", "soon", 1);
  CHECK_RESULT(khoroInvalidArgument, khoroGetUniqueId(&id));
  note_words();
}

/* Numbers of processes differ from run to run. */
static void print_without_pids(FILE* to, const char* title) {
  fprintf(to, "%s\n  ", title);
  for (const char* at = text; *at; ++at) {
    fputc(*at, to);
    if (strncmp(at, "pid ", 4) && strncmp(at, "process ", 8)) continue;
    while (*at != ' ') fputc(*++at, to);
    if (at[1] < '0' || at[1] > '9') continue;
    fputc('N', to);
    while (at[1] >= '0' && at[1] <= '9') ++at;
  }
  fprintf(to, "\n\n");
  *text = 0;
}

int main(int argc, char** argv) {
  char *got = NULL, expected[16 * text_bytes] = {0};
  size_t got_bytes = 0;
  const int accept = getenv("KHORO_ACCEPT") && !strcmp(getenv("KHORO_ACCEPT"), "1");
  unsetenv("KHORO_ACCEPT"); /* it is no setting, and would be warned of */
  FILE* memory = open_memstream(&got, &got_bytes);
  CHECK(argc == 2 && memory);
  text = mmap(NULL, text_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(text != MAP_FAILED);
#define SHOW(play, body) (play(body), print_without_pids(memory, #body))
  SHOW(run_in_child, ranks_are_missing);
  SHOW(run_in_child, setting_is_misspelt);
  SHOW(run_in_child, setting_has_no_such_value);
  SHOW(play_ranks, count_differs);
  SHOW(play_ranks, block_differs);
  SHOW(play_ranks, everybody_receives);
  SHOW(play_ranks, rank_does_not_call);
  SHOW(play_ranks, call_is_refused);
  SHOW(play_ranks, communicators_are_crossed);
  SHOW(play_ranks, peer_dies);
  fclose(memory);
  FILE* file = fopen(argv[1], accept ? "w" : "r");
  CHECK(file);
  if (accept)
    CHECK(fwrite(got, 1, got_bytes, file) == got_bytes);
  else
    CHECK(fread(expected, 1, sizeof expected - 1, file) < sizeof expected - 1);
  fclose(file);
  const int good = accept || !strcmp(got, expected);
  if (!good)
    fprintf(stderr, "%s\nis not what %s holds; KHORO_ACCEPT=1 rewrites it\n", got, argv[1]);
  free(got);
  return !good;
}
