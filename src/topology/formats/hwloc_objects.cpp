// SPDX-License-Identifier: Apache-2.0
#include "topology/formats/hwloc_objects.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "topology/formats/attributes.h"
#include "topology/formats/chips.h"

namespace khoro::hwloc {
namespace {

using pugi::xml_node;

/// Of an object, that are looked at for what it says of itself: those come first.
constexpr int most_children = 256;

/// "0302 [10de:15f9] [10de:116b] a1": a class and four ids.
void add_type(std::string_view text, Facts& facts) {
  static constexpr std::array<std::pair<std::string_view, std::size_t>, 4> ids = {
      {{"vendor", 6}, {"device", 11}, {"subsystem_vendor", 18}, {"subsystem_device", 23}}};
  if (text.size() < 28) return;
  const auto add = [&](std::string_view key, std::string_view digits, std::string_view rest) {
    if (const auto number = integer_of("0x" + std::string(digits)))
      facts.emplace(key, fmt::format("0x{:04x}{}", *number, rest));
  };
  add("class", text.substr(0, 4), "00");
  for (const auto& [key, offset] : ids) add(key, text.substr(offset, 4), "");
}

/// hwloc gives GB/s, from which generation and lanes are found again; where two fit, which have the
/// same rate, the one with more lanes.
void add_speed(std::string_view text, Facts& facts) {
  struct Lane {
    double rate;
    std::string_view speed;
  };
  // The second rate of 5 GT/s is what some versions computed.
  static constexpr std::array<Lane, 7> lanes = {{{0.25, "2.5 GT/s PCIe"},
                                                 {0.5, "5.0 GT/s PCIe"},
                                                 {0.615385, "5.0 GT/s PCIe"},
                                                 {0.984615, "8.0 GT/s PCIe"},
                                                 {1.969231, "16.0 GT/s PCIe"},
                                                 {3.938462, "32.0 GT/s PCIe"},
                                                 {7.876923, "64.0 GT/s PCIe"}}};
  double rate = 0;
  std::from_chars(text.data(), text.data() + text.size(), rate);
  if (!(rate > 0)) return;  // not known
  double nearest = 0.025;
  for (const int width : {16, 8, 4, 2, 1})
    for (const Lane& lane : lanes) {
      const double away = std::abs(width * lane.rate - rate) / rate;
      if (away > nearest - 1e-4) continue;  // not as near, or only by what was cut off
      nearest = away;
      facts["link_speed"] = lane.speed;
      facts["link_width"] = std::to_string(width);
    }
}

/// "0x00000303,,0x1" as NCCL writes it: "00000303,00000000,00000001".
std::string affinity(std::string_view cpu_set) {
  std::string text;
  while (!cpu_set.empty()) {
    const std::string_view word = cpu_set.substr(0, cpu_set.find(','));
    cpu_set.remove_prefix(std::min(word.size() + 1, cpu_set.size()));
    const std::string digits(word.substr(0, 2) == "0x" ? word.substr(2) : word);
    text += fmt::format("{}{:0>8}", text.empty() ? "" : ",", digits);
  }
  return text;
}

/// The package that a NUMA node is part of, or, in version 1, the first one that is part of it.
xml_node package_of(xml_node numa_node) {
  const auto is_package = [](xml_node object) {
    return is_type(object, "Package") || is_type(object, "Socket");
  };
  for (xml_node above = numa_node.parent(); above; above = above.parent())
    if (is_package(above)) return above;
  return numa_node.find_node(is_package);
}

std::string_view around(xml_node object, std::string_view name) {
  for (; object; object = object.parent())
    if (const std::string_view value = info(object, name); !value.empty()) return value;
  return {};
}

bool is_index(std::string_view text) {
  const auto number = integer_of(text);
  return number && *number >= 0 && *number <= std::numeric_limits<int>::max();
}

std::string architecture(std::string_view machine) {
  if (machine.substr(0, 5) == "ppc64") return "ppc64";
  if (machine == "aarch64") return "arm64";
  return std::string(machine);
}

std::string_view backend(xml_node os_device) {
  static constexpr std::array<std::string_view, 5> known = {"nvml", "rsmi", "cuda", "ze", "opencl"};
  const std::string_view name = os_device.attribute("name").value();
  const auto found = std::find_if(known.begin(), known.end(), [&](std::string_view with) {
    return name.size() > with.size() && name.substr(0, with.size()) == with &&
           name[with.size()] >= '0' && name[with.size()] <= '9';
  });
  if (found == known.end()) return {};
  const std::string_view type = info(os_device, "OpenCLDeviceType");
  return type.empty() || type == "GPU" ? *found : std::string_view();
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// Bits of version 3, in which a device may be several things; one number of versions 1 and 2.
struct PortKind {
  bool fabric;
  bool network;
};
PortKind port_kind(xml_node os_device) {
  const int type = os_device.attribute("osdev_type").as_int();
  if (type >= 16) return {(type & 32) != 0, (type & 16) != 0};
  return {type == 3, type == 2};
}

void add_fabric_ports(xml_node os_device, std::vector<Facts>& ports) {
  std::string guid(info(os_device, "NodeGUID"));
  guid.erase(std::remove(guid.begin(), guid.end(), ':'), guid.end());
  for (int port = 1; port <= 8; ++port) {
    const std::string_view state = info(os_device, fmt::format("Port{}State", port));
    const bool is_first = port == 1;
    // Without a word about any port there is one, of which no more is known.
    if (state.empty() && !(is_first && info(os_device, "Port2State").empty())) continue;
    if (!state.empty() && state != "4") continue;  // 4: active
    Facts facts = {{"name", os_device.attribute("name").value()}, {"port", std::to_string(port)}};
    if (!guid.empty()) facts.emplace("guid", "0x" + guid);
    ports.push_back(std::move(facts));
  }
}

}  // namespace

bool is_type(xml_node object, std::string_view type) {
  return object.attribute("type").value() == type;
}

std::string_view info(xml_node object, std::string_view name) {
  int left = most_children;
  for (const xml_node child : object.children()) {
    if (left-- == 0) break;
    if (child.name() == std::string_view("info") && child.attribute("name").value() == name)
      return trimmed(child.attribute("value").value());
  }
  return {};
}

std::optional<Facts> pci_facts(xml_node object) {
  const auto bus_id = bus_id_of(object.attribute("pci_busid").value());
  if (!bus_id) return std::nullopt;
  Facts facts = {{"busid", *bus_id}};
  add_type(object.attribute("pci_type").value(), facts);
  add_speed(object.attribute("pci_link_speed").value(), facts);
  return facts;
}

bool has_cpus(xml_node object) {
  const std::string_view cpus = object.attribute("cpuset").value();
  return cpus.find_first_of("123456789abcdef") != std::string_view::npos;
}

Facts cpu_facts(xml_node numa_node) {
  const std::string_view number = numa_node.attribute("os_index").value();
  Facts facts = {{"numaid", std::string(is_index(number) ? number : "-1")},
                 {"affinity", affinity(numa_node.attribute("cpuset").value())}};
  if (const std::string_view machine = around(numa_node, "Architecture"); !machine.empty())
    facts.emplace("arch", architecture(machine));
  const xml_node package = package_of(numa_node);
  const auto look = [&](std::string_view name) {
    return around(package ? package : numa_node, name);
  };
  if (!look("CPUVendor").empty()) facts.emplace("vendor", look("CPUVendor"));
  const auto family = integer_of(look("CPUFamilyNumber"));
  const auto model = integer_of(look("CPUModelNumber"));
  // NCCL shifts the extended family instead of adding it.
  if (family)
    facts.emplace("familyid", std::to_string(*family < 15 ? *family : 15 + (*family - 15) * 16));
  if (model) facts.emplace("modelid", std::to_string(*model));
  return facts;
}

DeviceKind kind_of(xml_node pci_device) {
  const std::string_view type = pci_device.attribute("pci_type").value();
  const std::string_view vendor = type.substr(0, 11).substr(std::min<std::size_t>(6, type.size()));
  if (pci_device.attribute("subtype").value() == std::string_view("NVSwitch"))
    return DeviceKind::nvswitch;
  if (type.substr(0, 2) == "02") return DeviceKind::nic;
  if (type.substr(0, 2) != "03" && type.substr(0, 2) != "12") return DeviceKind::other;
  // What only drives a screen, as that of a management controller, has no library that computes.
  for (const xml_node child : pci_device.children("object"))
    if (is_type(child, "OSDev") && !backend(child).empty()) return DeviceKind::gpu;
  const bool known = vendor.substr(0, 4) == "10de" || vendor.substr(0, 4) == "1002";
  return known && type.substr(0, 4) != "0300" ? DeviceKind::gpu : DeviceKind::other;
}

std::vector<std::vector<xml_node>> gpus_of(xml_node pci_device) {
  std::vector<std::vector<xml_node>> gpus(1);
  Facts seen;  // how many of each library, as text: one more for each of its devices
  for (const xml_node child : pci_device.children("object")) {
    if (!is_type(child, "OSDev")) continue;
    const std::string_view library = backend(child);
    if (library.empty()) continue;
    std::string& marks = seen[std::string(library)];
    if (marks.size() == gpus.size()) gpus.emplace_back();
    gpus[marks.size()].push_back(child);
    marks += '.';
  }
  return gpus;
}

Facts gpu_facts(const std::vector<xml_node>& devices) {
  Facts facts;
  for (const std::string_view library : {"nvml", "rsmi", "cuda", "ze", "opencl"})
    for (const xml_node device : devices) {
      if (backend(device) != library) continue;
      const std::string_view name = device.attribute("name").value();
      const std::string_view number = name.substr(name.find_last_not_of("0123456789") + 1);
      if (is_index(number)) facts.emplace("dev", number);
      const std::string_view uuid = info(device, library == "rsmi" ? "AMDUUID" : "NVIDIAUUID");
      if (!uuid.empty()) facts.emplace("uuid", uuid);
      if (!info(device, "GPUModel").empty()) facts.emplace("model", info(device, "GPUModel"));
    }
  return facts;
}

std::vector<Facts> ports_of(xml_node pci_device) {
  std::vector<Facts> ports;
  std::vector<Facts> networks;
  bool has_fabric = false;
  for (const xml_node child : pci_device.children("object")) {
    if (!is_type(child, "OSDev")) continue;
    const PortKind kind = port_kind(child);
    has_fabric |= kind.fabric;
    if (kind.fabric) add_fabric_ports(child, ports);
    if (kind.network && !kind.fabric)
      networks.push_back({{"name", child.attribute("name").value()}});
  }
  // The same ports once more, as the network stack names them.
  return has_fabric ? ports : networks;
}

}  // namespace khoro::hwloc
