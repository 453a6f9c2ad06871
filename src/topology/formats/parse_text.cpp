// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "topology/formats/findings.h"
#include "topology/formats/text.h"
#include "topology/formats/text_words.h"

namespace khoro {
namespace {

constexpr std::size_t most_sites = 65'536;
constexpr std::size_t most_links = std::size_t{1} << 22;
constexpr int most_faults = 16;
constexpr int largest = std::numeric_limits<int>::max();

template <class Kind, std::size_t size>
std::optional<Kind> take_kind(LineWords& words, const std::array<Kind, size>& kinds) {
  for (const Kind kind : kinds)
    if (words.take(name(kind))) return kind;
  return std::nullopt;
}

constexpr std::array site_kinds = {SiteKind::cpu,    SiteKind::bridge, SiteKind::gpu,
                                   SiteKind::nic,    SiteKind::port,   SiteKind::fabric,
                                   SiteKind::network};
constexpr std::array link_kinds = {LinkKind::pci,  LinkKind::nvlink, LinkKind::xgmi,
                                   LinkKind::c2c,  LinkKind::socket, LinkKind::inside,
                                   LinkKind::port, LinkKind::network};

class TextParser {
 public:
  Reading run(std::string_view text) {
    if (text.size() > most_topology_bytes)
      findings_.error(
          {1, 1}, "",
          fmt::format("{} bytes: a topology has at most {}", text.size(), most_topology_bytes));
    else
      read_lines(text);
    if (!findings_.failed() && !begun_)
      findings_.error({1, 1}, "", "no topology: expected \"topology\" in the first line");
    Reading reading;
    if (!findings_.failed()) reading.topology = std::move(topology_);
    reading.diagnostics = findings_.take();
    return reading;
  }

 private:
  void read_lines(std::string_view text) {
    int faults = 0;
    for (int line = 1; !text.empty() && faults < most_faults; ++line) {
      const std::string_view next = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(next.size() + 1, text.size()));
      try {
        take_line(next);
      } catch (const WordFault& fault) {
        findings_.error({line, static_cast<int>(fault.offset) + 1}, shown(next), fault.message);
        if (!begun_) return;  // nothing else could be understood
        ++faults;
      }
    }
  }

  void take_line(std::string_view line) {
    LineWords words(line);
    if (words.at_end()) return;
    if (!begun_) {
      words.expect("topology");
      words.expect_end();
      begun_ = true;
    } else if (words.take("link")) {
      link(words);
    } else if (words.take("rank")) {
      rank(words);
    } else if (const auto kind = take_kind(words, site_kinds)) {
      site(words, *kind);
    } else {
      words.refuse("a kind of site, \"link\" or \"rank\"");
    }
  }

  void site(LineWords& words, SiteKind kind) {
    const std::size_t at = words.offset();
    Site site{kind, words.word("the site's name"), 0, {}};
    words.expect("machine");
    site.machine = words.number("a machine", std::numeric_limits<int>::min(), largest);
    while (!words.at_end()) {
      const std::size_t key_at = words.offset();
      std::string key = words.word("a fact as key=value");
      words.expect("=");
      std::string value = words.word("a value; nothing is \"\"");
      if (!site.facts.try_emplace(key, std::move(value)).second)
        throw WordFault{key_at, fmt::format("a second {}", shown(key))};
    }
    if (topology_.sites.size() >= most_sites)
      throw WordFault{0, fmt::format("more than {} sites", most_sites)};
    if (!sites_.try_emplace(site.name, static_cast<int>(topology_.sites.size())).second)
      throw WordFault{at, fmt::format("a second site of the name {}", shown(site.name))};
    topology_.add(std::move(site));
  }

  int known_site(LineWords& words) {
    const std::size_t at = words.offset();
    const std::string name = words.word("the name of a site");
    const auto found = sites_.find(name);
    if (found == sites_.end())
      throw WordFault{at, fmt::format("no site {} in the lines above", shown(name))};
    return found->second;
  }

  void link(LineWords& words) {
    const auto kind = take_kind(words, link_kinds);
    if (!kind) words.refuse("a kind of link");
    Link link;
    link.kind = *kind;
    link.from = known_site(words);
    const bool both = words.take("--");
    if (!both) words.expect("->");
    link.to = known_site(words);
    amounts(words, link);
    if (topology_.links.size() + 2 > most_links)
      throw WordFault{0, fmt::format("more than {} links", most_links)};
    if (both)
      topology_.connect(link.from, link.to, link);
    else
      topology_.links.push_back(link);
  }

  /// "x2 40 GB/s 1 us", each of them if it is there.
  static void amounts(LineWords& words, Link& link) {
    if (words.take_prefix("x")) link.count = words.number("a count", 0, largest);
    while (!words.at_end()) {
      const std::size_t at = words.offset();
      const std::string_view what = "a rate in GB/s or a latency in us";
      LineWords ahead = words;
      ahead.word(what);
      const bool is_rate = ahead.take("GB/s");
      if (!is_rate) ahead.expect("us");
      double& value = is_rate ? link.bytes_per_second : link.latency_seconds;
      if (value != 0) throw WordFault{at, is_rate ? "a second rate" : "a second latency"};
      value = words.rate(what, is_rate ? -9 : 6);
      words = ahead;
    }
  }

  void rank(LineWords& words) {
    const std::size_t at = words.offset();
    const int rank = words.number("a rank", 0, largest);
    if (rank != topology_.ranks())
      throw WordFault{at, fmt::format("rank {} where rank {} is due", rank, topology_.ranks())};
    const int site = known_site(words);
    words.expect_end();
    topology_.place.push_back(site);
  }

  Findings findings_;
  Topology topology_;
  std::map<std::string, int> sites_;
  bool begun_ = false;
};

}  // namespace

Reading parse_topology(std::string_view text) { return TextParser().run(text); }

}  // namespace khoro
