// SPDX-License-Identifier: Apache-2.0
#include "topology/detect/detect.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "topology/detect/nvml.h"
#include "topology/rates.h"

namespace khoro {
namespace {

/// "0000:40:03.0", with a domain of any length.
bool is_bus_id(std::string_view name) {
  const std::size_t colon = name.find(':');
  return colon != name.npos && colon >= 4 && name.size() == colon + 8 && name[colon + 3] == ':' &&
         name[colon + 6] == '.';
}

class Detection {
 public:
  explicit Detection(const Files& files) : files_(files) {}

  Reading run() {
    add_cpus();
    add_gpus();
    add_fabric_ports();
    add_interfaces();
    if (!unreadable_.empty())
      reading_.diagnostics.push_back(
          {0, "", fmt::format("not readable here, and left out: {}", fmt::join(unreadable_, ", ")),
           0, Severity::warning});
    reading_.topology = std::move(topology_);
    return std::move(reading_);
  }

 private:
  void add_cpus();
  void describe_cpus();
  void add_gpus();
  void add_fabric_ports();
  void add_interfaces();
  void add_port(int nic, Facts facts, const std::string& name);
  /// The site of a PCI device, with the bridges on the way to its CPU, made when first asked for.
  int device(const std::string& place, SiteKind kind);
  /// That of what hangs off no PCI bus.
  int virtual_nic(const std::string& name);
  int cpu_of(const std::string& place);
  /// Copies the text of a file into a fact; false if it cannot be read.
  bool take(Site& site, const char* fact, const std::string& path);
  /// The PCI function in the path of a device, or of a part of it; empty if there is none.
  std::string pci_function(const std::string& place) const;

  const Files& files_;
  Topology topology_;
  Reading reading_;
  std::map<long, int> cpus_;            // by NUMA node
  std::map<std::string, int> devices_;  // by place
  std::set<std::string> unreadable_;
  int ports_ = 0;
};

bool Detection::take(Site& site, const char* fact, const std::string& path) {
  const auto text = files_.text(path);
  if (text && !text->empty()) site.facts[fact] = *text;
  return text.has_value();
}

void Detection::add_cpus() {
  const std::string nodes = "sys/devices/system/node";
  for (const std::string& node : files_.names(nodes)) {
    if (!node.starts_with("node")) continue;
    const auto number = leading_number(std::string_view(node).substr(4));
    if (!number) continue;
    // Memory without cores, of a GPU or a persistent one, is no place for threads.
    if (files_.text(fmt::format("{}/{}/cpulist", nodes, node)) == "") continue;
    Site site{SiteKind::cpu, "cpu " + node, 0, {{"numaid", std::to_string(*number)}}};
    take(site, "affinity", fmt::format("{}/{}/cpumap", nodes, node));
    cpus_[*number] = topology_.add(std::move(site));
  }
  if (cpus_.empty()) cpus_[0] = topology_.add({SiteKind::cpu, "cpu node0", 0, {{"numaid", "0"}}});
  describe_cpus();
}

void Detection::describe_cpus() {
  Facts facts;
  const auto text = files_.text("proc/cpuinfo");
  if (!text)
    reading_.diagnostics.push_back({0, "",
                                    "no /proc/cpuinfo: vendor and model of the CPUs are not known, "
                                    "nor how fast they reach each other",
                                    0, Severity::warning});
  for (std::string_view rest = text ? std::string_view(*text) : ""; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const std::size_t colon = line.find(": ");
    if (colon == line.npos) continue;
    const std::string_view key = line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1);
    const std::string value(line.substr(colon + 2));
    if (key == "vendor_id") facts.try_emplace("vendor", value), facts["arch"] = "x86_64";
    if (key == "cpu family") facts.try_emplace("familyid", value);
    if (key == "model" && !value.empty() && value.find_first_not_of("0123456789") == value.npos)
      facts.try_emplace("modelid", value);
    if (key == "CPU implementer") facts["arch"] = "arm64";
    if (key == "cpu" && value.starts_with("POWER")) facts["arch"] = "ppc64";
  }
  for (const auto& [node, site] : cpus_)
    topology_.sites[static_cast<std::size_t>(site)].facts.insert(facts.begin(), facts.end());
}

std::string Detection::pci_function(const std::string& place) const {
  std::string function;
  for (std::size_t end = 0; end != place.npos;) {
    end = place.find('/', end + 1);
    const std::string here = place.substr(0, end);
    if (is_bus_id(std::string_view(here).substr(here.rfind('/') + 1))) function = here;
  }
  return function;
}

int Detection::cpu_of(const std::string& place) {
  const auto text = files_.text(place + "/numa_node");
  const auto found = cpus_.find(text ? leading_number(*text).value_or(-1) : -1);
  return found == cpus_.end() ? cpus_.begin()->second : found->second;
}

int Detection::device(const std::string& place, SiteKind kind) {
  const auto known = devices_.find(place);
  if (known != devices_.end()) return known->second;
  const std::string bus_id = place.substr(place.rfind('/') + 1);
  Site site{kind, fmt::format("{} {}", name(kind), bus_id), 0, {{"busid", bus_id}}};
  for (const char* fact : {"class", "vendor", "device", "subsystem_vendor", "subsystem_device"})
    if (!take(site, fact, fmt::format("{}/{}", place, fact))) unreadable_.insert("/" + place);
  // What the link can do: an idle device may run slower now.
  if (!take(site, "link_speed", place + "/max_link_speed"))
    take(site, "link_speed", place + "/current_link_speed");
  if (!take(site, "link_width", place + "/max_link_width"))
    take(site, "link_width", place + "/current_link_width");
  const int index = topology_.add(std::move(site));
  devices_[place] = index;
  // The port above a device is part of the switch whose upstream port is above that.
  const auto above = [](const std::string& path) { return path.substr(0, path.rfind('/')); };
  const std::string upstream = above(above(place));
  const bool behind_switch = is_bus_id(std::string_view(upstream).substr(upstream.rfind('/') + 1));
  const int parent = behind_switch ? device(upstream, SiteKind::bridge) : cpu_of(place);
  topology_.connect(index, parent, {.kind = LinkKind::pci});
  return index;
}

/// Display controllers of those who build no GPUs to compute with are no GPUs here.
bool is_gpu(std::string_view pci_class, std::string_view vendor) {
  if (pci_class.starts_with("0x12")) return true;
  return pci_class.starts_with("0x03") && (vendor == "0x10de" || vendor == "0x1002");
}

void Detection::add_gpus() {
  const std::string devices = "sys/bus/pci/devices";
  int number = 0;
  for (const std::string& bus_id : files_.names(devices)) {
    const auto place = files_.place(devices + "/" + bus_id);
    if (!place) continue;
    const std::string pci_class = files_.text(*place + "/class").value_or("");
    if (!is_gpu(pci_class, files_.text(*place + "/vendor").value_or(""))) continue;
    Site& site = topology_.sites[static_cast<std::size_t>(device(*place, SiteKind::gpu))];
    site.facts["dev"] = std::to_string(number++);
  }
}

int Detection::virtual_nic(const std::string& name) {
  const int nic = topology_.add({SiteKind::nic, "nic " + name, 0, {}});
  topology_.connect(nic, cpus_.begin()->second, {.kind = LinkKind::inside});
  return nic;
}

void Detection::add_port(int nic, Facts facts, const std::string& name) {
  facts["name"] = name;
  facts["dev"] = std::to_string(ports_++);
  const int port = topology_.add({SiteKind::port, "port " + name, 0, std::move(facts)});
  topology_.connect(nic, port, {.kind = LinkKind::port});
}

void Detection::add_fabric_ports() {
  const std::string all = "sys/class/infiniband";
  for (const std::string& name : files_.names(all)) {
    const auto place = files_.place(fmt::format("{}/{}", all, name));
    if (!place) continue;
    const std::string function = pci_function(*place);
    const int nic = function.empty() ? virtual_nic(name) : device(function, SiteKind::nic);
    for (const std::string& port : files_.names(*place + "/ports")) {
      const std::string here = fmt::format("{}/ports/{}", *place, port);
      Facts facts = {{"port", port}};
      std::string guid = files_.text(*place + "/node_guid").value_or("");
      std::erase(guid, ':');
      if (!guid.empty()) facts["guid"] = "0x" + guid;
      // "100 Gb/sec (4X EDR)"
      if (const auto rate = leading_number(files_.text(here + "/rate").value_or("")))
        facts["speed"] = std::to_string(*rate * 1000);
      if (const auto gid = files_.text(here + "/gids/0")) facts["gid"] = *gid;
      add_port(nic, std::move(facts), name);
    }
  }
}

void Detection::add_interfaces() {
  const std::string all = "sys/class/net";
  std::vector<std::string> made_up;  // of no device
  const auto speed_of = [&](const std::string& name) {
    Facts facts;
    const auto speed =
        leading_number(files_.text(fmt::format("{}/{}/speed", all, name)).value_or(""));
    if (speed && *speed > 0) facts["speed"] = std::to_string(*speed);
    return facts;
  };
  for (const std::string& name : files_.names(all)) {
    const auto device_place = files_.place(fmt::format("{}/{}/device", all, name));
    if (!device_place) {
      if (files_.text(fmt::format("{}/{}/type", all, name)) == "1") made_up.push_back(name);
      continue;
    }
    const std::string function = pci_function(*device_place);
    // The port of an RDMA device is there already, under a name by which it does more.
    const bool is_rdma = !function.empty() && !files_.names(function + "/infiniband").empty();
    if (is_rdma) continue;
    add_port(function.empty() ? virtual_nic(name) : device(function, SiteKind::nic), speed_of(name),
             name);
  }
  if (ports_ == 0 && !made_up.empty())
    add_port(virtual_nic(made_up.front()), speed_of(made_up.front()), made_up.front());
}

}  // namespace

Reading detect_from(const Files& files) { return Detection(files).run(); }

Reading detect_machine() {
  Reading reading = detect_from(FolderFiles("/"));
  add_what_nvml_knows(*reading.topology, reading.diagnostics);
  return reading;
}

}  // namespace khoro
