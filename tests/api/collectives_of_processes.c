/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that are processes get the right values from every collective. */
#include "collective_cases.h"

int main(void) {
  for (int ranks = 1; ranks <= 4; ++ranks) run_processes(ranks, every_collective);
  return 0;
}
