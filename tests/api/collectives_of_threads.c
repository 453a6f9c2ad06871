/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that are threads of one process get the right values from every collective. */
#include "collective_cases.h"

int main(void) {
  for (int ranks = 1; ranks <= 5; ++ranks) run_threads(ranks, every_collective);
  return 0;
}
