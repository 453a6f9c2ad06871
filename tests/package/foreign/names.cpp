// SPDX-License-Identifier: Apache-2.0
// A program of somebody else, in C++, with names of its own that Khoro and what is inside of it
// have too: linked with the archive, it has both.
#include <khoro/khoro.h>

#include <cstdio>
#include <string>

namespace khoro {
class System;
// Is declared in src/base/system.h.
System& machine() { std::abort(); }
}  // namespace khoro

// Is of libcrypto.
extern "C" int SHA256_Init(void*) { std::abort(); }

int main() {
  khoroComm_t comms[1];
  if (khoroCommInitAllHost(comms, 1) != khoroSuccess) return 1;
  const std::string words = khoroGetErrorString(khoroCommDestroy(comms[0]));
  std::puts(words.c_str());
}
