// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "topology/formats/xml.h"
#include "topology/topology.h"

/// What single objects of hwloc's XML say, whichever version wrote it.
namespace khoro::hwloc {

bool is_type(pugi::xml_node object, std::string_view type);
/// The value of an <info> of this object; empty if it has none of that name.
std::string_view info(pugi::xml_node object, std::string_view name);

/// Of a <Bridge> or <PCIDev>: bus id, class, ids, and the speed as generation and lanes. Nothing if
/// it has no usable bus id.
std::optional<Facts> pci_facts(pugi::xml_node object);

/// Of a NUMA node with CPUs; infos of the package and of the machine around it are looked up.
Facts cpu_facts(pugi::xml_node numa_node);
bool has_cpus(pugi::xml_node object);

enum class DeviceKind : std::uint8_t { other, gpu, nic, nvswitch };
DeviceKind kind_of(pugi::xml_node pci_device);

/// The GPUs of a PCI function: more than one where it is split in parts. Each is the list of the
/// <OSDev> by which libraries know it.
std::vector<std::vector<pugi::xml_node>> gpus_of(pugi::xml_node pci_device);
/// Its number, model and id, from whichever library says so.
Facts gpu_facts(const std::vector<pugi::xml_node>& devices);

/// The ports of a NIC that are not down, as facts.
std::vector<Facts> ports_of(pugi::xml_node pci_device);

}  // namespace khoro::hwloc
