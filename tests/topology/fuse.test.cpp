// SPDX-License-Identifier: Apache-2.0
#include "topology/fuse.h"

#include "support/catch.h"
#include "topology/normalise.h"
#include "topology/raw_machines.h"

namespace khoro {
namespace {

/// Two sockets, with a 100 Gb/s port on a bus and one of a virtual NIC.
Topology machine() {
  Topology raw = test::two_sockets();
  Site nic{SiteKind::nic, "nic", 0, {{"busid", "0000:13:00.0"}}};
  nic.facts["link_speed"] = "16.0 GT/s PCIe";
  nic.facts["link_width"] = "16";
  const int real = raw.add(std::move(nic));
  raw.connect(real, 1, {.kind = LinkKind::pci});
  const int port = raw.add({SiteKind::port, "a", 0, {{"name", "mlx5_0"}, {"speed", "100000"}}});
  raw.connect(real, port, {.kind = LinkKind::port});
  const int made_up = raw.add({SiteKind::nic, "virtual", 0, {}});
  raw.connect(made_up, 0, {.kind = LinkKind::inside});
  const int bridge = raw.add({SiteKind::port, "b", 0, {{"name", "docker0"}, {"speed", "10000"}}});
  raw.connect(made_up, bridge, {.kind = LinkKind::port});
  return normalise(raw).topology;
}

TEST_CASE("machines that are built alike are joined by their real ports", "[topology]") {
  const Topology all = fused(machine(), 3);
  CHECK(all.ranks() == 12);
  CHECK(all.machine_of(0) == 0);
  CHECK(all.machine_of(11) == 2);
  REQUIRE(all.sites_of(SiteKind::network).size() == 1);
  const int network = all.find("network0");
  int joined = 0;
  for (const Link& link : all.links)
    if (link.from == network) {
      ++joined;
      CHECK(all.site(link.to).fact("name") == "mlx5_0");
      CHECK(link.bytes_per_second == 12.5e9);
    }
  CHECK(joined == 3);
}

TEST_CASE("one machine alone stays as it is", "[topology]") {
  CHECK(fused(machine(), 1) == machine());
}

}  // namespace
}  // namespace khoro
