/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KHORO_EXAMPLES_CHECK_H
#define KHORO_EXAMPLES_CHECK_H

#include <khoro/khoro.h>
#include <stdio.h>
#include <stdlib.h>

/* Ends the program with the words of a call that failed. */
static inline void check(khoroResult_t result, khoroComm_t comm) {
  if (result == khoroSuccess) return;
  fprintf(stderr, "%s: %s\n", khoroGetErrorString(result), khoroGetLastError(comm));
  exit(1);
}

#endif
