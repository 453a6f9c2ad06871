// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "topology/formats/findings.h"
#include "topology/formats/raw_sites.h"
#include "topology/formats/xml.h"
#include "topology/topology.h"

namespace khoro::nccl {

/// What a GPU says of a link of its own.
struct LinkClaim {
  int gpu = 0;
  /// The CPU that it hangs off.
  int cpu = 0;
  LinkKind kind = LinkKind::nvlink;
  std::string target;        // bus id as written
  std::string target_class;  // "0x068000"; empty: not said
  int count = 1;
  Position where;
};

/// Reads <nvlink>, <xgmi> or <c2c> of a GPU, sites aside; the rate of <c2c> becomes a fact of the
/// GPU.
LinkClaim read_claim(const XmlText& xml, pugi::xml_node element, Site& gpu, Findings& findings);

/// Where bus ids lead, by machine: they repeat from one to the next.
using Devices = std::map<std::pair<int, std::string>, int>;

/// Turns what the GPUs of a text claim into links and fabrics, each pair of sites joined once. A
/// link between GPUs is what both of them claim; what only one claims, or none can have, is dropped
/// with a warning.
void connect(const std::vector<LinkClaim>& claims, const Devices& devices, SiteNames& names,
             Topology& topology, Findings& findings);

}  // namespace khoro::nccl
