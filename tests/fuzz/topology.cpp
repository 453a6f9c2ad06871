// SPDX-License-Identifier: Apache-2.0

// Looks for texts that break a reader, a law of readers, writers and repairs, or the search. Its
// corpus is tests/golden/topologies.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "support/topology_laws.h"
#include "topology/check.h"
#include "topology/search.h"

namespace {

using namespace khoro;

/// With more GPUs a text takes longer than it is worth.
constexpr std::size_t most_gpus = 6;

/// What the checker says of the channels that are found on a machine; "" if they are sound.
std::string wrong_channels(std::string_view text) {
  const Reading reading = read_topology(text);
  if (!reading.topology) return "";
  const Topology topology = normalise(*reading.topology).topology;
  const std::vector<int> gpus = topology.sites_of(SiteKind::gpu);
  if (gpus.size() > most_gpus) return "";
  const Answer answer = search_channels(topology, gpus).whole;
  const auto found = check_channels(topology, answer.gpus, answer.channels);
  return found.empty() ? "" : found.front().place + ": " + found.front().message;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::string law = test::broken_law(text);
  if (law.empty()) law = wrong_channels(text);
  if (law.empty()) return 0;
  std::fprintf(stderr, "%s\n", law.c_str());
  std::abort();
}
