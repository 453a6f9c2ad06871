// SPDX-License-Identifier: Apache-2.0
// How near the search comes to the limits of recorded machines.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "support/catch.h"
#include "support/topologies.h"
#include "topology/answers.h"
#include "topology/formats/nccl_graph.h"
#include "topology/formats/read.h"
#include "topology/normalise.h"
#include "topology/rates.h"
#include "topology/search.h"

using namespace khoro;
using test::read_file;

namespace {

/// What every machine's answer reaches of its bound, which no algorithm can exceed: so it reaches
/// as much of the best rings, too.
constexpr double least_ratio = 0.98;

std::vector<std::filesystem::path> all_topologies() {
  auto files = test::golden_topologies();
  for (const auto& file : test::more_topologies()) files.push_back(file);
  return files;
}

/// Normalised; nothing if the file describes no machine.
std::optional<Normalised> machine_of(const std::filesystem::path& file) {
  Reading reading = read_topology(read_file(file));
  if (!reading.topology) return std::nullopt;
  return normalise(std::move(*reading.topology));
}

std::string stem(const std::filesystem::path& file) {
  const std::string name = file.filename().string();
  return name.substr(0, name.rfind(".xml"));
}

/// Rates in GB/s that NCCL or RCCL are known to reach by their own count, without in-network
/// reduction: channels times their rate, from published logs, or counted from their tables of
/// models.
const std::map<std::string, double> known_rates = {
    {"amd-16xmi250x-2h3xgmi-8nic-4amd-a", 0.76 * 288},
    {"amd-4xmi300a-1h3xgmi-4nic-4amd2-a", 144},
    {"amd-8xmi250x-2h3xgmi-4nic-2amd-a", 144},
    {"amd-8xmi250x-2h3xgmi-4nic-2amd-b", 144},
    {"amd-8xmi300x-1h7xgmi-8nic-2intel-a", 336},
    {"aws-p5-8xh100-32efa", 24},
    {"azure-nc48v4-2xa100", 240},
    {"azure-ncv4-4xa100-self-nvlink", 12},
    {"ibm-vpc-gx3d-8xh100-vm", 360},
    {"l20-16gpu-8bf3-pcie", 20},
    {"modal-8xb200-vm-emptyspeed", 720},
    {"oci-bm-gpu-h100-8", 360},
    {"rtx3090-8gpu-pmc-switch", 10},
    {"rtx4090-4gpu-k8s-veth", 15},
    {"synth-gb300-nvl72-72gpu", 720},
    {"synth-ibm-ac922-4xv100", 30},
};

/// NCCL's answer in the graph beside a machine, 0 if there is none.
double rate_beside(const std::filesystem::path& file) {
  auto graph = file;
  graph.replace_extension(".graph.xml");
  if (!std::filesystem::exists(graph)) return 0;
  const GraphReading reading = read_nccl_graphs(read_file(graph));
  REQUIRE(reading.graphs);
  for (const NcclGraph& found : *reading.graphs)
    if (found.id == 0) return static_cast<double>(found.channels.size()) * found.speed_intra;
  return 0;
}

/// NCCL 2.11 counted 22 GB/s for an NVLink of a V100, of which 20 were measured; the rates
/// here are the measured ones, as are NCCL's since. Elsewhere both count alike.
double as_counted_here(double rate, const Topology& topology) {
  const auto gpus = topology.sites_of(SiteKind::gpu);
  const bool v100 = std::all_of(gpus.begin(), gpus.end(),
                                [&](int gpu) { return topology.site(gpu).fact("sm") == "70"; });
  return v100 ? rate * 20 / 22 : rate;
}

}  // namespace

TEST_CASE("every recorded machine with two GPUs is used to its limit", "[topology]") {
  int machines = 0;
  std::set<Method> methods;
  for (const auto& file : all_topologies()) {
    const auto machine = machine_of(file);
    if (!machine) continue;
    const Topology& topology = machine->topology;
    const auto gpus = topology.sites_of(SiteKind::gpu);
    if (gpus.size() < 2) continue;
    INFO(file.string());
    const Answers answers = search_channels(topology, gpus);
    CHECK(answers.whole.ratio() >= least_ratio);
    CHECK(answers.whole.bus > 0);
    CHECK(test::complaints(topology, answers.whole) == "");
    for (const Answer& island : answers.islands) {
      CHECK(island.ratio() >= least_ratio);
      CHECK(test::complaints(topology, island) == "");
    }
    methods.insert(answers.whole.method);
    ++machines;
  }
  CHECK(machines > (std::string(KHORO_TOPOLOGIES).empty() ? 15 : 80));
  CHECK(methods == std::set{Method::switches, Method::mesh, Method::rings, Method::trees});
}

TEST_CASE("no machine is used less than NCCL or RCCL use it", "[topology]") {
  int beside = 0, known = 0;
  for (const auto& file : all_topologies()) {
    const double graph = rate_beside(file);
    const auto row = known_rates.find(stem(file));
    if (graph == 0 && row == known_rates.end()) continue;
    const auto machine = machine_of(file);
    if (!machine) continue;
    INFO(file.string());
    const Topology& topology = machine->topology;
    const auto gpus = topology.sites_of(SiteKind::gpu);
    const double found = search_channels(topology, gpus).whole.bus / 1e9;
    CHECK(found >= as_counted_here(graph, topology) - 1e-6);
    if (row != known_rates.end()) CHECK(found >= row->second - 1e-6);
    beside += graph > 0;
    known += row != known_rates.end();
  }
  const bool more = !std::string(KHORO_TOPOLOGIES).empty();
  CHECK(beside >= (more ? 7 : 2));  // Perlmutter and eight B200 twice
  CHECK(known >= (more ? 18 : 2));
}

TEST_CASE("all subsets of a recorded hybrid cube mesh come near their bound", "[topology]") {
  int meshes = 0;
  for (const auto& file : all_topologies()) {
    if (stem(file) != "nvidia-dgx1v-8xv100-hcm" && stem(file) != "synth-hybrid-cube-mesh-8xv100")
      continue;
    INFO(file.string());
    const Topology topology = machine_of(file)->topology;
    const auto gpus = topology.sites_of(SiteKind::gpu);
    REQUIRE(gpus.size() == 8);
    double sum = 0;
    int subsets = 0;
    for (unsigned set = 0; set < 256; ++set) {
      std::vector<int> chosen;
      for (std::size_t i = 0; i < 8; ++i)
        if (set >> i & 1) chosen.push_back(gpus[i]);
      if (chosen.size() < 2) continue;
      INFO("set " << set);
      const Answer answer = search_channels(topology, chosen).whole;
      CHECK(answer.ratio() >= least_ratio);
      CHECK(test::complaints(topology, answer) == "");
      sum += answer.ratio();
      ++subsets;
    }
    CHECK(subsets == 247);
    CHECK(sum / subsets >= 0.995);
    ++meshes;
  }
  CHECK(meshes == (std::string(KHORO_TOPOLOGIES).empty() ? 1 : 2));
}

TEST_CASE("a broken GPU of two trays is named, and the other seven come near their bound",
          "[topology]") {
  int trays = 0;
  for (const auto& file : all_topologies()) {
    if (stem(file) != "nvidia-gb300-2tray-rank1-zero-nvlink" &&
        stem(file) != "synth-two-trays-broken-gpu")
      continue;
    INFO(file.string());
    const auto machine = machine_of(file);
    REQUIRE(machine);
    const Topology& topology = machine->topology;
    const auto& said = machine->diagnostics;
    CHECK(std::count_if(said.begin(), said.end(), [](const Diagnostic& diagnostic) {
            return diagnostic.severity == Severity::warning &&
                   diagnostic.place.rfind("gpu 1 at 0009:06:00.0 of machine 0", 0) == 0 &&
                   diagnostic.message.find("0.0 GB/s of direct links") == 0;
          }) == 1);
    const Answers answers = search_channels(topology, topology.sites_of(SiteKind::gpu));
    REQUIRE(answers.islands.size() == 1);
    const Answer& healthy = answers.islands.front();
    CHECK(healthy.gpus.size() == 7);
    for (const int gpu : healthy.gpus) CHECK(topology.site(gpu).fact("rank") != "1");
    CHECK(healthy.bus == Approx(721.8e9));
    CHECK(healthy.ratio() >= least_ratio);
    CHECK(answers.whole.ratio() >= least_ratio);
    ++trays;
  }
  CHECK(trays == (std::string(KHORO_TOPOLOGIES).empty() ? 1 : 2));
}
