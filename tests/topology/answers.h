// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "topology/check.h"
#include "topology/search.h"

namespace khoro::test {

/// What an independent look at an answer finds wrong; "" if nothing.
inline std::string complaints(const Topology& topology, const Answer& answer) {
  std::string all;
  for (const Diagnostic& found : check_channels(topology, answer.gpus, answer.channels))
    all += found.place + ": " + found.message + "\n";
  if (answer.bus > answer.bound.bus * (1 + 1e-9)) all += "more than the bound\n";
  return all;
}

/// An answer in names of sites, which do not depend on their order.
inline std::string text_of(const Topology& topology, const Answer& answer) {
  std::string text = std::string(name(answer.method)) + " " + std::to_string(answer.bus) + "\n";
  for (const Channel& channel : answer.channels) {
    text += std::string(name(channel.kind)) + " " + std::to_string(channel.bytes_per_second);
    for (const Hop& hop : channel.hops) {
      text += " " + topology.site(hop.from).name;
      for (int link : hop.route) {
        const Link& taken = topology.links[static_cast<std::size_t>(link)];
        text += " -" + std::string(name(taken.kind)) + "- " + topology.site(taken.to).name;
      }
      text += ",";
    }
    text += "\n";
  }
  return text;
}

/// The answers for all GPUs of a machine.
inline std::string text_of(const Topology& topology) {
  const Answers answers = search_channels(topology, topology.sites_of(SiteKind::gpu));
  std::string text = text_of(topology, answers.whole);
  for (const Answer& island : answers.islands) text += "island " + text_of(topology, island);
  return text;
}

}  // namespace khoro::test
