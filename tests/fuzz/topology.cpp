// SPDX-License-Identifier: Apache-2.0

// Looks for texts that break a reader, or a law of readers and writers. Its corpus is
// tests/golden/topologies.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "support/topology_laws.h"
#include "topology/formats/hwloc_xml.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string law = khoro::test::broken_law(text);
  if (law.empty()) return 0;
  std::fprintf(stderr, "%s\n", law.c_str());
  std::abort();
}
