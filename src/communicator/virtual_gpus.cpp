// SPDX-License-Identifier: Apache-2.0
#include "communicator/virtual_gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "topology/formats/read.h"
#include "topology/normalise.h"
#include "topology/peer_access.h"

namespace khoro {
namespace {

/// Nothing is taken before it is used.
constexpr std::uint64_t memory_bytes = std::uint64_t{16} << 30;
constexpr int multiprocessors = 128;  // with a block on each

DeviceFacts facts_of(int number, std::string bus_id) {
  DeviceFacts facts;
  facts.name = fmt::format("virtual GPU {}", number);
  facts.bus_id = std::move(bus_id);
  facts.memory_bytes = memory_bytes;
  facts.multiprocessors = multiprocessors;
  return facts;
}

/// GPUs that all reach each other.
VirtualMachine alike(int count) {
  VirtualMachine machine;
  for (int i = 0; i < count; ++i)
    machine.devices.push_back(facts_of(i, fmt::format("0000:{:02x}:00.0", i + 1)));
  const auto all = static_cast<std::size_t>(count);
  machine.reach.assign(all, std::vector<bool>(all, true));
  return machine;
}

[[noreturn]] void refuse(const Settings& settings, const std::string& why) {
  throw Error(Code::invalid_argument,
              fmt::format("KHORO_TOPO_FILE={}: {}", settings.topology_file, why));
}

Topology machine_in(const Settings& settings) {
  std::ifstream file(settings.topology_file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file) refuse(settings, "cannot read it");
  Reading reading = read_topology(text);
  if (!reading.topology) {
    const auto error = std::find_if(
        reading.diagnostics.begin(), reading.diagnostics.end(),
        [](const Diagnostic& diagnostic) { return diagnostic.severity == Severity::error; });
    refuse(settings, error == reading.diagnostics.end()
                         ? "it is no machine"
                         : fmt::format("line {}: {}", error->line, error->message));
  }
  return normalise(std::move(*reading.topology)).topology;
}

}  // namespace

VirtualMachine virtual_machine_of(const Topology& topology, int count) {
  std::vector<int> gpus = topology.sites_of(SiteKind::gpu);
  gpus.resize(std::min(gpus.size(), static_cast<std::size_t>(count)));
  VirtualMachine machine;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    std::string bus_id(topology.site(gpus[i]).fact("busid"));
    // GPUs that hang off no bus, or are parts of one device, have names all the same.
    const bool taken =
        std::any_of(machine.devices.begin(), machine.devices.end(),
                    [&](const DeviceFacts& other) { return other.bus_id == bus_id; });
    if (bus_id.empty() || taken) bus_id = topology.site(gpus[i]).name;
    machine.devices.push_back(facts_of(static_cast<int>(i), std::move(bus_id)));
    std::vector<bool>& reach = machine.reach.emplace_back();
    for (const int other : gpus) reach.push_back(have_peer_access(topology, gpus[i], other));
  }
  return machine;
}

VirtualMachine virtual_machine_of(const Settings& settings) {
  const auto count = static_cast<int>(settings.virtual_gpus);
  VirtualMachine machine;
  if (settings.topology_file.empty() || count == 0) {
    machine = alike(count);
  } else {
    machine = virtual_machine_of(machine_in(settings), count);
    if (machine.devices.empty()) refuse(settings, "the machine has no GPU");
    if (static_cast<int>(machine.devices.size()) < count)
      log(LogLevel::info, "KHORO_VIRTUAL_GPUS={}: the machine of KHORO_TOPO_FILE has {} GPUs",
          count, machine.devices.size());
  }
  machine.resident_blocks = multiprocessors;
  machine.block_threads = 1;  // many blocks share few cores, and meetings of threads are dear
#ifdef KHORO_TEST_SWITCHES
  machine.failure = static_cast<std::uint64_t>(settings.virtual_failure);
  if (settings.virtual_seed != 0) {
    machine.seed = static_cast<std::uint64_t>(settings.virtual_seed);
    machine.block_threads = 2;
  }
#endif
  return machine;
}

}  // namespace khoro
