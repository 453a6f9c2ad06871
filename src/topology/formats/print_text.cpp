// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <utility>

#include "topology/formats/text.h"
#include "topology/formats/text_words.h"

namespace khoro {
namespace {

void print_site(const Site& site, std::string& text) {
  text += fmt::format("{} {} machine {}", name(site.kind), quoted_word(site.name), site.machine);
  for (const auto& [key, value] : site.facts)
    text += fmt::format(" {}={}", quoted_word(key), quoted_word(value));
  text += '\n';
}

bool are_opposite(const Link& one, Link other) {
  std::swap(other.from, other.to);
  return one == other;
}

void print_link(const Topology& topology, const Link& link, std::string_view arrow,
                std::string& text) {
  text +=
      fmt::format("link {} {} {} {}", name(link.kind), quoted_word(topology.site(link.from).name),
                  arrow, quoted_word(topology.site(link.to).name));
  if (link.count != 1) text += fmt::format(" x{}", link.count);
  if (link.bytes_per_second != 0)
    text += fmt::format(" {} GB/s", decimal(link.bytes_per_second, -9));
  if (link.latency_seconds != 0) text += fmt::format(" {} us", decimal(link.latency_seconds, 6));
  text += '\n';
}

}  // namespace

std::string print(const Topology& topology) {
  std::string text = "topology\n";
  for (const Site& site : topology.sites) print_site(site, text);
  for (std::size_t i = 0; i < topology.links.size(); ++i) {
    const Link& link = topology.links[i];
    const bool both = i + 1 < topology.links.size() && are_opposite(link, topology.links[i + 1]);
    print_link(topology, link, both ? "--" : "->", text);
    i += both;
  }
  for (int rank = 0; rank < topology.ranks(); ++rank)
    text += fmt::format("rank {} {}\n", rank,
                        quoted_word(topology.site(topology.place[std::size_t(rank)]).name));
  return text;
}

}  // namespace khoro
