// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/memory_job.h"

/// Plans for what no algorithm does, or not so that a test could see it.
namespace khoro::test {

/// Windows in output and in scratch, and a message between.
inline Plan window_plan() {
  return plan_from(
      "plan allreduce.windows ranks 2 chunks 2\n"
      "rank 0\n"
      "  lane 0\n"
      "    offer output[1] to 1\n"
      "    offer scratch[0] to 1\n"
      "    read input[1] | send 1\n"
      "    take 1\n"
      "    take 1 | reduce input[0] | write output[0] | put 1\n"
      "rank 1\n"
      "  lane 0\n"
      "    offer output[0] to 0\n"
      "    recv 0 | reduce input[1] | write output[1] | put 0\n"
      "    read input[0] | put 0\n"
      "    take 0\n");
}

/// Windows that values of the carry type go through.
inline Plan average_window_plan() {
  return plan_from(
      "plan allreduce.windows ranks 3 chunks 1 average\n"
      "rank 0\n"
      "  lane 0\n"
      "    read input[0] | put 1\n"
      "    offer output[0] to 2\n"
      "    take 2\n"
      "rank 1\n"
      "  lane 0\n"
      "    offer scratch[0] to 0\n"
      "    take 0 | reduce input[0] | put 2\n"
      "    offer output[0] to 2\n"
      "    take 2\n"
      "rank 2\n"
      "  lane 0\n"
      "    offer scratch[1] to 1\n"
      "    take 1 | reduce input[0] | scale | write output[0] | put 0 | put 1\n");
}

/// Rank 0 lends output[0] and scratch[0], and then writes them anew; rank 1 reads late.
inline Plan late_reader_plan() {
  return plan_from(
      "plan broadcast.late ranks 2 chunks 2 root 0\n"
      "rank 0\n"
      "  lane 0\n"
      "    read input[0] | write output[0]\n"
      "    read output[0] | send 1\n"
      "    read input[1] | write output[1]\n"
      "    read input[1] | write scratch[0]\n"
      "    read scratch[0] | send 1\n"
      "    read input[0] | write scratch[0]\n"
      "rank 1\n"
      "  lane 0\n"
      "    recv 0 | write output[0]\n"
      "    recv 0 | write output[1]\n");
}

}  // namespace khoro::test
