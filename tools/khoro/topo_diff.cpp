// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "commands.h"
#include "topo.h"
#include "topology/repair/repairs.h"

namespace khoro::tool {
namespace {

/// What names a site in two descriptions of one machine, or of two that are built alike: not its
/// number, which changes when one before it is missing.
std::string identity(const Topology& topology, int index) {
  const Site& site = topology.site(index);
  for (const char* key : {"busid", "name", "numaid"})
    if (const std::string_view value = site.fact(key); !value.empty())
      return fmt::format("{} {}{}", name(site.kind), value,
                         site.machine > 0 ? fmt::format(" of machine {}", site.machine) : "");
  return site.name;
}

/// The topology by identities.
struct Described {
  std::map<std::string, Facts> sites;
  std::map<std::tuple<std::string, std::string, LinkKind>, Link> links;

  explicit Described(const Topology& topology) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < topology.sites.size(); ++i) {
      std::string name = identity(topology, static_cast<int>(i));
      for (int number = 2; sites.contains(name); ++number)
        name = fmt::format("{} #{}", identity(topology, static_cast<int>(i)), number);
      names.push_back(std::move(name));
      sites.emplace(names.back(), topology.sites[i].facts);
    }
    for (const Link& link : topology.links)
      links.emplace(std::tuple(names[static_cast<std::size_t>(link.from)],
                               names[static_cast<std::size_t>(link.to)], link.kind),
                    link);
  }
};

/// "12.5 GB/s", "x4 80 GB/s": what two links are compared by.
std::string words_of(const Link& link) {
  return fmt::format("{}{} GB/s", link.count > 1 ? fmt::format("x{} ", link.count) : "",
                     gigabytes(link.bytes_per_second));
}

/// Facts that say where a device was found and not what it is.
bool is_incidental(const std::string& key) { return key == "rank" || key == "host_hash"; }

class Difference {
 public:
  int count = 0;

  void sites(const Described& one, const Described& other) {
    for (const auto& [name, facts] : one.sites) {
      const auto found = other.sites.find(name);
      if (found == other.sites.end())
        say("- {}", name);
      else
        compare(name, facts, found->second);
    }
    for (const auto& [name, facts] : other.sites)
      if (!one.sites.contains(name)) say("+ {}", name);
  }

  void links(const Described& one, const Described& other) {
    for (const auto& [ends, link] : one.links) {
      const auto& [from, to, kind] = ends;
      if (!other.sites.contains(from) || !other.sites.contains(to)) continue;
      const auto found = other.links.find(ends);
      if (found == other.links.end())
        say("- {} {} -> {}", name(kind), from, to);
      else if (words_of(found->second) != words_of(link))
        say("  {} {} -> {}: {}, {}", name(kind), from, to, words_of(link), words_of(found->second));
    }
    for (const auto& [ends, link] : other.links) {
      const auto& [from, to, kind] = ends;
      if (one.sites.contains(from) && one.sites.contains(to) && !one.links.contains(ends))
        say("+ {} {} -> {}", name(kind), from, to);
    }
  }

 private:
  template <class... Arguments>
  void say(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
    fmt::print("{}\n", fmt::format(text, std::forward<Arguments>(arguments)...));
    ++count;
  }

  void compare(const std::string& name, const Facts& one, const Facts& other) {
    std::set<std::string> keys;
    for (const auto& [key, value] : one) keys.insert(key);
    for (const auto& [key, value] : other) keys.insert(key);
    for (const std::string& key : keys) {
      const auto value = [&key](const Facts& facts) {
        const auto found = facts.find(key);
        return found == facts.end() ? std::string("-") : found->second;
      };
      if (!is_incidental(key) && value(one) != value(other))
        say("  {}: {} {}, {}", name, key, value(one), value(other));
    }
  }
};

}  // namespace

void add_topo_diff(CLI::App& topo, int& status) {
  CLI::App* command = topo.add_subcommand("diff", "Print in what two machines differ");
  auto files = std::make_shared<std::pair<std::string, std::string>>();  // lives as long
  command->add_option("one", files->first, "a file that describes a machine")->required();
  command->add_option("other", files->second, "another; default: this machine");
  command->callback([files, &status] {
    const Described one(load_machine(files->first).topology);
    const Described other(load_machine(files->second).topology);
    Difference difference;
    difference.sites(one, other);
    difference.links(one, other);
    if (difference.count > 0) status = found_something;
  });
}

}  // namespace khoro::tool
