// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdio>
#include <exception>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "support/case_memory.h"
#include "support/fleet.h"

namespace khoro::test {

inline const std::string on_gpus = "KHORO_MEMORY=virtual;KHORO_DEADLINE=60s";

/// The call came to that, and its words have `part` in them.
inline void came_to(khoroResult_t expected, khoroResult_t result, const std::string& part) {
  const std::string words = khoroGetLastError(nullptr);
  expect(result == expected, std::string("it came to ") + khoroGetErrorString(result) + ": " +
                                 words + ", and not to: " + part);
  expect_in(words, part);
}

/// What a process does by itself; what goes wrong goes to standard error.
inline bool in_a_process(const std::function<void()>& body) {
  Child child([&] {
    try {
      body();
      return 0;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      return 1;
    }
  });
  return child.wait() == 0;
}

/// Floats on the rank's GPU, for in and out.
struct Floats {
  Floats(khoroComm_t comm, std::size_t count) : here(2 * count), memory(comm) {
    memory.bring(std::as_writable_bytes(std::span(here)));
    in = memory.at(here.data());
    out = memory.at(here.data() + count);
  }
  std::vector<float> here;
  CaseMemory memory;
  float *in, *out;
};

}  // namespace khoro::test
