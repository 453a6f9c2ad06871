// SPDX-License-Identifier: Apache-2.0
#include "topology/detect/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace khoro {
namespace {

// What of NVML's binary interface is used here, as its documentation has it. It keeps that: symbols
// with new meanings get new suffixes.
using Device = struct OpaqueDevice*;
using Result = int;
constexpr Result nvml_success = 0;

struct PciInfo {
  std::array<char, 16> legacy_bus_id;
  unsigned domain, bus, device, device_id, subsystem_id;
  std::array<char, 32> bus_id;
};
static_assert(sizeof(PciInfo) == 68);

struct FieldValue {
  unsigned field;
  unsigned scope;
  long long timestamp, latency;
  int type;
  Result result;
  union {
    unsigned number;
    double real;
  } value;
};
static_assert(sizeof(FieldValue) == 40);

struct FabricInfo {
  unsigned version;
  std::array<unsigned char, 16> cluster;
  Result status;
  unsigned clique;
  unsigned char state;
  unsigned health;
};
static_assert(sizeof(FabricInfo) == 36);
constexpr unsigned fabric_info_version = sizeof(FabricInfo) | (2u << 24);
constexpr unsigned char fabric_state_completed = 3;

constexpr unsigned c2c_link_count = 170, c2c_link_status = 171, c2c_link_rate = 172;
constexpr unsigned most_links = 64;
enum RemoteType : int { remote_gpu = 0, remote_power_cpu = 1, remote_switch = 2 };

class Nvml {
 public:
  Nvml() : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL), &close) {
    if (!library_) return;
    started_ = call<Result()>("nvmlInit_v2") == nvml_success;
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  ~Nvml() {
    if (started_) (void)call<Result()>("nvmlShutdown");
  }

  bool installed() const noexcept { return library_ != nullptr; }
  bool started() const noexcept { return started_; }

  /// Not success if there is no such function.
  template <class Signature, class... Arguments>
  Result call(const char* name, Arguments... arguments) const {
    auto* const function = reinterpret_cast<Signature*>(dlsym(library_.get(), name));
    return function == nullptr ? -1 : function(arguments...);
  }

 private:
  static int close(void* library) { return library == nullptr ? 0 : dlclose(library); }

  std::unique_ptr<void, int (*)(void*)> library_;
  bool started_ = false;
};

/// "00000000:06:00.0" as the kernel writes it.
std::string bus_id_of(const PciInfo& info) {
  std::string text(info.bus_id.data(), std::find(info.bus_id.begin(), info.bus_id.end(), '\0'));
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  while (text.find(':') > 4 && text.front() == '0') text.erase(0, 1);
  return text;
}

class Extension {
 public:
  Extension(const Nvml& nvml, Topology& topology) : nvml_(nvml), topology_(topology) {}

  void run() {
    unsigned count = 0;
    if (nvml_.call<Result(unsigned*)>("nvmlDeviceGetCount_v2", &count) != nvml_success) return;
    for (unsigned i = 0; i < count; ++i) describe(i);
    for (const auto& [gpu, device] : devices_) {
      add_nvlinks(gpu, device);
      add_c2c(gpu, device);
    }
  }

 private:
  void describe(unsigned index);
  void add_nvlinks(int gpu, Device device);
  void add_c2c(int gpu, Device device);
  int gpu_at(const std::string& bus_id);
  int fabric();
  std::optional<unsigned> field(Device device, unsigned field, unsigned scope) const;

  const Nvml& nvml_;
  Topology& topology_;
  std::map<int, Device> devices_;  // by site
};

int Extension::gpu_at(const std::string& bus_id) {
  for (const int gpu : topology_.sites_of(SiteKind::gpu))
    if (topology_.site(gpu).fact("busid") == bus_id) return gpu;
  // A container can hide the device from /sys.
  const int gpu = topology_.add({SiteKind::gpu, "gpu " + bus_id, 0, {{"busid", bus_id}}});
  topology_.connect(gpu, topology_.sites_of(SiteKind::cpu).front(), {.kind = LinkKind::pci});
  return gpu;
}

void Extension::describe(unsigned index) {
  Device device = nullptr;
  PciInfo pci{};
  if (nvml_.call<Result(unsigned, Device*)>("nvmlDeviceGetHandleByIndex_v2", index, &device) !=
          nvml_success ||
      nvml_.call<Result(Device, PciInfo*)>("nvmlDeviceGetPciInfo_v3", device, &pci) != nvml_success)
    return;
  const int gpu = gpu_at(bus_id_of(pci));
  devices_[gpu] = device;
  Facts& facts = topology_.sites[static_cast<std::size_t>(gpu)].facts;
  facts["dev"] = std::to_string(index);
  int major = 0, minor = 0;
  if (nvml_.call<Result(Device, int*, int*)>("nvmlDeviceGetCudaComputeCapability", device, &major,
                                             &minor) == nvml_success)
    facts["sm"] = std::to_string(10 * major + minor);
  FabricInfo info{};
  info.version = fabric_info_version;
  if (nvml_.call<Result(Device, FabricInfo*)>("nvmlDeviceGetGpuFabricInfoV", device, &info) !=
          nvml_success ||
      info.state != fabric_state_completed || info.status != nvml_success)
    return;
  facts["fabric_uuid"] = fmt::format("{:02x}", fmt::join(info.cluster, ""));
  facts["fabric_clique"] = std::to_string(info.clique);
}

int Extension::fabric() {
  const std::vector<int> fabrics = topology_.sites_of(SiteKind::fabric);
  if (!fabrics.empty()) return fabrics.front();
  return topology_.add(
      {SiteKind::fabric, "fabric fffffff:ff:ff.0", 0, {{"busid", "fffffff:ff:ff.0"}}});
}

void Extension::add_nvlinks(int gpu, Device device) {
  std::map<int, int> count;  // by the site at the other end
  for (unsigned link = 0; link < most_links; ++link) {
    unsigned active = 0;
    if (nvml_.call<Result(Device, unsigned, unsigned*)>("nvmlDeviceGetNvLinkState", device, link,
                                                        &active) != nvml_success ||
        active == 0)
      continue;
    int type = remote_switch;
    (void)nvml_.call<Result(Device, unsigned, int*)>("nvmlDeviceGetNvLinkRemoteDeviceType", device,
                                                     link, &type);
    PciInfo pci{};
    const bool known =
        nvml_.call<Result(Device, unsigned, PciInfo*)>("nvmlDeviceGetNvLinkRemotePciInfo_v2",
                                                       device, link, &pci) == nvml_success;
    if (type == remote_gpu) {
      const auto peer = std::find_if(devices_.begin(), devices_.end(), [&](const auto& other) {
        return known && topology_.site(other.first).fact("busid") == bus_id_of(pci);
      });
      if (peer != devices_.end()) ++count[peer->first];
    } else {
      ++count[type == remote_power_cpu ? topology_.cpu_of(gpu) : fabric()];
    }
  }
  for (const auto& [site, links] : count) {
    if (site < 0) continue;  // a CPU that is not known
    const Link link{.from = gpu, .to = site, .kind = LinkKind::nvlink, .count = links};
    // The other GPU tells of its own end.
    if (topology_.site(site).kind == SiteKind::gpu)
      topology_.links.push_back(link);
    else
      topology_.connect(gpu, site, link);
  }
}

std::optional<unsigned> Extension::field(Device device, unsigned field, unsigned scope) const {
  FieldValue value{};
  value.field = field;
  value.scope = scope;
  const bool asked = nvml_.call<Result(Device, int, FieldValue*)>(
                         "nvmlDeviceGetFieldValues", device, 1, &value) == nvml_success;
  return asked && value.result == nvml_success ? std::optional(value.value.number) : std::nullopt;
}

void Extension::add_c2c(int gpu, Device device) {
  int count = 0;
  unsigned rate = 0;
  const unsigned links = std::min(field(device, c2c_link_count, 0).value_or(0), most_links);
  for (unsigned link = 0; link < links; ++link) {
    if (field(device, c2c_link_status, link) != 1u) continue;
    if (const auto of_link = field(device, c2c_link_rate, link)) {
      rate = *of_link;
      ++count;
    }
  }
  const int cpu = topology_.cpu_of(gpu);
  if (count == 0 || cpu < 0) return;
  topology_.sites[static_cast<std::size_t>(gpu)].facts["c2c_bw"] = std::to_string(rate);
  topology_.connect(gpu, cpu, {.kind = LinkKind::c2c, .count = count});
}

}  // namespace

void add_what_nvml_knows(Topology& topology, std::vector<Diagnostic>& diagnostics) {
  const Nvml nvml;
  if (!nvml.installed()) return;
  if (nvml.started())
    Extension(nvml, topology).run();
  else
    diagnostics.push_back({0, "",
                           "NVML is installed and does not start: GPUs are as PCI shows them", 0,
                           Severity::warning});
}

}  // namespace khoro
