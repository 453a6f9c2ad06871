// SPDX-License-Identifier: Apache-2.0
// Runs where the loader finds the library of fake_nvml.cpp as NVML.
#include "topology/detect/nvml.h"

#include "support/catch.h"
#include "topology/normalise.h"
#include "topology/raw_machines.h"

namespace khoro {
namespace {

TEST_CASE("what NVML knows of GPUs is added to what PCI shows", "[topology]") {
  Topology machine;
  const int cpu = machine.add(test::cpu_site(0));
  for (const char* bus_id : {"0000:a0:00.0", "0000:a1:00.0"}) {  // a container hides the third
    Site gpu = test::gpu_site(7, bus_id);
    gpu.facts.erase("sm");
    machine.connect(machine.add(std::move(gpu)), cpu, {.kind = LinkKind::pci});
  }
  std::vector<Diagnostic> diagnostics;
  add_what_nvml_knows(machine, diagnostics);
  CHECK(diagnostics.empty());
  const Topology found = normalise(machine).topology;
  REQUIRE(found.sites_of(SiteKind::gpu).size() == 3);
  const Site& first = found.site(found.find("gpu0"));
  CHECK(first.fact("dev") == "0");
  CHECK(first.fact("sm") == "90");
  CHECK(first.fact("busid") == "0000:a0:00.0");
  CHECK(first.fact("fabric_clique") == "5");
  CHECK(first.fact("fabric_uuid") == "abababababababababababababababab");
  const auto count = [&](const char* from, const char* to, LinkKind kind) {
    const Link* const link = test::link_between(found, from, to, kind);
    return link == nullptr ? 0 : link->count;
  };
  CHECK(count("gpu0", "gpu1", LinkKind::nvlink) == 4);
  CHECK(count("gpu1", "gpu0", LinkKind::nvlink) == 4);
  CHECK(count("gpu0", "fabric0", LinkKind::nvlink) == 2);
  CHECK(count("gpu2", "fabric0", LinkKind::nvlink) == 2);
  CHECK(count("gpu0", "cpu0", LinkKind::c2c) == 2);
  CHECK(test::link_between(found, "gpu0", "cpu0", LinkKind::c2c)->bytes_per_second ==
        Approx(2 * 44.712e9));
  CHECK(count("gpu2", "cpu0", LinkKind::pci) == 1);
}

}  // namespace
}  // namespace khoro
