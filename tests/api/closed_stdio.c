/* SPDX-License-Identifier: Apache-2.0 */
/* In a program that has closed its standard input, output and error, nothing of Khoro gets their
 * numbers: what such a program prints, or opens in their place, is its own affair. */
#include "usage.h"
#include "values.h"

#include <errno.h>
#include <fcntl.h>

enum { ranks = 3 };

/* Where the checks of this test complain. */
static void move_errors_away(void) {
  const int moved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 40);
  CHECK(moved >= 40);
  FILE* away = fdopen(moved, "w");
  CHECK(away);
  stderr = away;
  setvbuf(stderr, NULL, _IONBF, 0);
}

static void check_standard_numbers_are_free(void) {
  for (int number = 0; number <= 2; ++number) CHECK(fcntl(number, F_GETFD) == -1 && errno == EBADF);
}

static void print_to_nobody(void) {
  CHECK(printf("to nobody") > 0);
  CHECK(fflush(stdout) == EOF && errno == EBADF);
  clearerr(stdout);
}

static void use(khoroComm_t comm, int rank, int size) {
  static float in[64][5000], out[64][5000];
  check_standard_numbers_are_free();
  if (rank == 0) print_to_nobody();
  for (int i = 0; i < 20; ++i) {
    fill(in[rank], khoroFloat32, 5000, rank, 0);
    OK(khoroAllReduce(in[rank], out[rank], 5000, khoroFloat32, khoroSum, comm, NULL));
    double sum = 0;
    for (int r = 0; r < size; ++r) sum += contribution(r, 4999);
    CHECK(out[rank][4999] == (float)sum);
  }
  check_standard_numbers_are_free();
}

/* What calls have used is mapped, so they go on; nothing that watches for peers is left. */
static void close_everything(khoroComm_t comm, int rank, int size) {
  float in = 1, out = 0;
  for (int i = 0; i < 10; ++i) {
    if (rank == 1 && i == 1)
      for (int number = 3; number < 1000; ++number) close(number);
    OK(khoroAllReduce(&in, &out, 1, khoroFloat32, khoroSum, comm, NULL));
    CHECK(out == (float)size);
  }
}

int main(void) {
  move_errors_away();
  for (int number = 0; number <= 2; ++number) CHECK(close(number) == 0);
  const int base = descriptors();
  run_processes(ranks, use);
  /* A sanitizer takes it for the race that it is. */
  if (!SANITIZED) run_processes(ranks, close_everything);
  run_threads(ranks, use);

  /* What the program opens now is what it expects: the lowest number. */
  khoroComm_t comm;
  OK(khoroCommInitAllHost(&comm, 1));
  CHECK(open("/dev/null", O_WRONLY | O_CLOEXEC) == 0);
  OK(khoroCommDestroy(comm));
  CHECK(close(0) == 0);
  CHECK(descriptors() == base);
  return 0;
}
