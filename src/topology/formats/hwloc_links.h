// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "topology/formats/findings.h"
#include "topology/formats/xml.h"
#include "topology/topology.h"

namespace khoro::hwloc {

/// The sites of objects, by "OSDev:332".
using Objects = std::map<std::string, int>;

/// Joins GPUs, and what they are linked to, by the matrices of NVLink and xGMI bandwidth. Those are
/// nominal: how many links they stand for is worked out.
void connect(const XmlText& xml, const Objects& objects, Topology& topology, Findings& findings);

}  // namespace khoro::hwloc
