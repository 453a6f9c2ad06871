/* SPDX-License-Identifier: Apache-2.0 */
/* An id that nobody uses is given up at the init deadline: nothing of it is left, and who comes
 * later is told at once. */
#include "check.h"
#include "usage.h"

enum { unused = 50 };

int main(void) {
  CHECK(setenv("KHORO_INIT_DEADLINE", "300ms", 1) == 0);
  khoroUniqueId ids[unused];
  OK(khoroGetUniqueId(&ids[0])); /* starts the control thread, which stays until the next call */
  const int with_one = descriptors();
  OK(khoroGetUniqueId(&ids[1]));
  const int each = descriptors() - with_one;
  for (int i = 2; i < unused; ++i) OK(khoroGetUniqueId(&ids[i]));
  CHECK(each > 0);

  const double start = seconds();
  while (descriptors() != with_one - each && seconds() - start < 60) sleep_ms(20);
  CHECK(descriptors() == with_one - each);

  khoroComm_t comm = NULL;
  const double late = seconds();
  CHECK_RESULT(khoroInvalidUsage, khoroCommInitRank(&comm, 1, ids[unused - 1], 0));
  CHECK_WORDS("nobody came to it before its deadline");
  CHECK(seconds() - late < 10);
  CHECK(!comm);

  /* The process goes on. */
  CHECK(setenv("KHORO_INIT_DEADLINE", "20s", 1) == 0);
  OK(khoroGetUniqueId(&ids[0]));
  OK(khoroCommInitRank(&comm, 1, ids[0], 0));
  OK(khoroCommDestroy(comm));
  return 0;
}
