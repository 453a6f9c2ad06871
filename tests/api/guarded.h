/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers with a guard at both ends, of which release() finds whether it was overwritten. */
#ifndef KHORO_TESTS_GUARDED_H
#define KHORO_TESTS_GUARDED_H

#include "check.h"

enum { guard_bytes = 64, guard_byte = 0x5a };

/* Full of what the guards hold. */
static inline void* guarded(size_t bytes) {
  char* memory = malloc(bytes + 2 * guard_bytes);
  CHECK(memory);
  memset(memory, guard_byte, bytes + 2 * guard_bytes);
  return memory + guard_bytes;
}

static inline void release(void* buffer, size_t bytes) {
  char* memory = (char*)buffer - guard_bytes;
  for (int i = 0; i < guard_bytes; ++i) {
    CHECK(memory[i] == guard_byte);
    CHECK(memory[guard_bytes + bytes + (size_t)i] == guard_byte);
  }
  free(memory);
}

#endif
