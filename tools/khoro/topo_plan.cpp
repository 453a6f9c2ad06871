// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "base/error.h"
#include "simulate/simulate.h"
#include "table.h"
#include "topo.h"
#include "topology/fuse.h"
#include "topology/search.h"

namespace khoro::tool {
namespace {

struct Options {
  std::string file;
  std::vector<int> gpus;
  int nodes = 1;
  std::size_t simulated_bytes = 0;  // 0: none
  Format format = Format::text;
};

struct Timed {
  Answers answers;
  double milliseconds = 0;
};

Timed timed_search(const Topology& topology, const std::vector<int>& gpus) {
  const auto begin = std::chrono::steady_clock::now();
  Answers answers = search_channels(topology, gpus);
  const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - begin;
  return {std::move(answers), taken.count()};
}

/// "gpu0 gpu3 gpu1" of a ring, "gpu0>gpu1 gpu0>gpu2 gpu1>gpu3" of a tree.
std::string order_of(const Topology& topology, const Channel& channel) {
  std::vector<std::string> words;
  for (const Hop& hop : channel.hops)
    words.push_back(channel.kind == ChannelKind::ring
                        ? topology.site(hop.from).name
                        : topology.site(hop.from).name + ">" + topology.site(hop.to).name);
  return fmt::format("{}", fmt::join(words, " "));
}

std::string words_of(const Topology& topology, const std::vector<int>& links) {
  std::set<std::string> words;  // one for both ways
  for (const int index : links) {
    const Link& link = topology.links[static_cast<std::size_t>(index)];
    const auto [one, other] = std::minmax(link.from, link.to);
    words.insert(fmt::format("{}-{}", topology.site(one).name, topology.site(other).name));
  }
  constexpr std::size_t most = 12;
  if (words.size() <= most) return fmt::format("{}", fmt::join(words, " "));
  return fmt::format("{} links, from {} on", words.size(), *words.begin());
}

std::string names_of(const Topology& topology, const std::vector<int>& sites) {
  std::vector<std::string_view> names;
  for (const int site : sites) names.push_back(topology.site(site).name);
  return fmt::format("{}", fmt::join(names, " "));
}

/// "gpu3 mlx5_1 > mlx5_1 gpu8": where a channel leaves a machine, and where it enters the next.
std::string ports_of(const Topology& topology, const Channel& channel) {
  const auto label = [&](int port) {
    const Site& site = topology.site(port);
    return site.fact("name").empty() ? std::string_view(site.name) : site.fact("name");
  };
  std::vector<std::string> words;
  for (const Crossing& crossing : crossings_of(topology, channel)) {
    const Hop& hop = channel.hops[static_cast<std::size_t>(crossing.hop)];
    words.push_back(fmt::format("{} {} > {} {}", topology.site(hop.from).name, label(crossing.exit),
                                label(crossing.entry), topology.site(hop.to).name));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

void print_answer(const Topology& topology, const Answer& answer) {
  fmt::print("GPUs     {}, over {}\n", names_of(topology, answer.gpus),
             answer.links == LinkChoice::direct ? "NVLink or xGMI" : "all links");
  if (answer.gpus.size() < 2 || answer.bound.bus <= 0) {
    fmt::print("{}\n", answer.gpus.size() < 2 ? "there is nothing to exchange"
                                              : "no links join them: there is no way to exchange");
    return;
  }
  fmt::print("bound    {} GB/s of bus bandwidth, by {}\n", gigabytes(answer.bound.bus),
             words_of(topology, answer.bound.bus_cut.links));
  fmt::print("         {} GB/s of rings, or of a broadcast from the worst root\n",
             gigabytes(answer.bound.ring));
  fmt::print("found    {} GB/s, {:.2f} of it, by {}\n", gigabytes(answer.bus), answer.ratio(),
             name(answer.method));
  if (!answer.full.empty()) fmt::print("full     {}\n", words_of(topology, answer.full));
  std::set<int> machines;
  for (const int gpu : answer.gpus) machines.insert(topology.site(gpu).machine);
  Table table({"channel", "GB/s", "order", machines.size() > 1 ? "out and in" : ""});
  std::size_t number = 0;
  for (const Channel& channel : answer.channels)
    table.add({fmt::format("{} {}", name(channel.kind), number++),
               gigabytes(channel.bytes_per_second), order_of(topology, channel),
               ports_of(topology, channel)});
  fmt::print("{}", table.text());
}

nlohmann::ordered_json json_of(const Topology& topology, const Answer& answer) {
  const auto links = [&](const std::vector<int>& indices) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const int index : indices) {
      const Link& link = topology.links[static_cast<std::size_t>(index)];
      list.push_back({topology.site(link.from).name, topology.site(link.to).name});
    }
    return list;
  };
  nlohmann::ordered_json all = {{"gpus", nlohmann::ordered_json::array()},
                                {"links", answer.links == LinkChoice::direct ? "direct" : "all"},
                                {"method", name(answer.method)},
                                {"bus_bytes_per_second", answer.bus},
                                {"bound_bytes_per_second", answer.bound.bus},
                                {"ring_bound_bytes_per_second", answer.bound.ring},
                                {"ratio", answer.ratio()},
                                {"bound_links", links(answer.bound.bus_cut.links)},
                                {"full_links", links(answer.full)},
                                {"channels", nlohmann::ordered_json::array()}};
  for (const int gpu : answer.gpus) all["gpus"].push_back(topology.site(gpu).name);
  for (const Channel& channel : answer.channels) {
    nlohmann::ordered_json hops = nlohmann::ordered_json::array();
    for (const Hop& hop : channel.hops)
      hops.push_back({{"from", topology.site(hop.from).name},
                      {"to", topology.site(hop.to).name},
                      {"links", links(hop.route)}});
    nlohmann::ordered_json crossings = nlohmann::ordered_json::array();
    for (const Crossing& crossing : crossings_of(topology, channel))
      crossings.push_back({{"hop", crossing.hop},
                           {"out", topology.site(crossing.exit).name},
                           {"in", topology.site(crossing.entry).name}});
    all["channels"].push_back({{"kind", name(channel.kind)},
                               {"root", topology.site(channel.root).name},
                               {"bytes_per_second", channel.bytes_per_second},
                               {"hops", std::move(hops)},
                               {"crossings", std::move(crossings)}});
  }
  return all;
}

/// The same GPUs of every machine: each machine has as many, in the same order.
std::vector<int> gpus_of_all(const Topology& all, const Topology& one,
                             const std::vector<int>& chosen) {
  const std::vector<int> of_all = all.sites_of(SiteKind::gpu), of_one = one.sites_of(SiteKind::gpu);
  std::vector<int> gpus;
  for (std::size_t first = 0; first < of_all.size(); first += of_one.size())
    for (const int site : chosen) {
      const auto place = std::find(of_one.begin(), of_one.end(), site) - of_one.begin();
      gpus.push_back(of_all[first + static_cast<std::size_t>(place)]);
    }
  return gpus;
}

struct Simulated {
  double seconds = 0;
  double bus = 0;
};

Simulated simulate_allreduce(Topology topology, const std::vector<int>& gpus, std::size_t bytes) {
  topology.place = gpus;
  const int ranks = topology.ranks();
  const Plan plan = make_plan(*find_algorithm(CollectiveKind::allreduce, "channels"),
                              {CollectiveKind::allreduce, ranks}, topology, Shape{});
  const double seconds = simulate(plan, topology, {.bytes = bytes}).seconds;
  const double bus = 2.0 * (ranks - 1) / ranks * static_cast<double>(bytes);
  return {seconds, seconds > 0 ? bus / seconds : 0};
}

void plan(const Options& options) {
  const Normalised machine = load_machine(options.file);
  const std::vector<int> chosen = gpus_numbered(machine.topology, options.gpus);
  const Topology topology = fused(machine.topology, options.nodes);
  const std::vector<int> gpus = gpus_of_all(topology, machine.topology, chosen);
  const Timed found = timed_search(topology, gpus);
  Simulated simulated;
  if (options.simulated_bytes > 0 && found.answers.whole.bound.bus > 0)
    simulated = simulate_allreduce(topology, gpus, options.simulated_bytes);
  if (options.format == Format::json) {
    nlohmann::ordered_json all = {{"version", 1},
                                  {"milliseconds", found.milliseconds},
                                  {"whole", json_of(topology, found.answers.whole)},
                                  {"islands", nlohmann::ordered_json::array()}};
    for (const Answer& island : found.answers.islands)
      all["islands"].push_back(json_of(topology, island));
    if (options.simulated_bytes > 0)
      all["simulated"] = {{"bytes", options.simulated_bytes},
                          {"seconds", simulated.seconds},
                          {"bus_bytes_per_second", simulated.bus}};
    return fmt::print("{}\n", all.dump(2));
  }
  for (const Diagnostic& diagnostic : machine.diagnostics)
    if (diagnostic.severity != Severity::note) fmt::print("{}\n", line_of(diagnostic));
  print_answer(topology, found.answers.whole);
  for (const Answer& island : found.answers.islands) {
    fmt::print("\nisland\n");
    print_answer(topology, island);
  }
  if (options.simulated_bytes > 0)
    fmt::print("\nallreduce of {} bytes, simulated: {:.1f} us, {} GB/s of bus bandwidth\n",
               options.simulated_bytes, simulated.seconds * 1e6, gigabytes(simulated.bus));
  fmt::print("\nsearched for {:.1f} ms\n", found.milliseconds);
}

}  // namespace

std::vector<int> gpus_numbered(const Topology& topology, const std::vector<int>& numbers) {
  const std::vector<int> all = topology.sites_of(SiteKind::gpu);
  if (numbers.empty()) return all;
  std::vector<int> chosen;
  for (const int number : numbers) {
    if (number < 0 || number >= static_cast<int>(all.size()))
      throw Error(Code::invalid_argument,
                  fmt::format("--gpus: no GPU {}; there are {}", number, all.size()));
    chosen.push_back(all[static_cast<std::size_t>(number)]);
  }
  return chosen;
}

void add_gpus(CLI::App& command, std::vector<int>& gpus) {
  command.add_option("--gpus", gpus, "numbers of the GPUs that take part; default: all")
      ->delimiter(',')
      ->type_name("LIST");
}

void add_topo_plan(CLI::App& topo) {
  CLI::App* command =
      topo.add_subcommand("plan", "Find the fastest rings and trees between GPUs, and their limit");
  auto options = std::make_shared<Options>();  // lives as long as the command
  add_file(*command, options->file);
  add_gpus(*command, options->gpus);
  command->add_option("--nodes", options->nodes, "so many machines like this one, over their NICs")
      ->check(CLI::Range(1, 128))
      ->type_name("N");
  command
      ->add_option("--simulate", options->simulated_bytes,
                   "also play an allreduce of so many bytes on the machine")
      ->transform(CLI::AsSizeValue(false))
      ->type_name("BYTES");
  add_format(*command, options->format);
  command->callback([options] { plan(*options); });
}

}  // namespace khoro::tool
