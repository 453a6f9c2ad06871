// SPDX-License-Identifier: Apache-2.0
#include "drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "layout.h"
#include "topo.h"

namespace khoro::tool {
namespace {

std::string_view colour_of(LinkKind kind) {
  switch (kind) {
    case LinkKind::nvlink:
      return "#4a9d2f";
    case LinkKind::xgmi:
      return "#c8442b";
    case LinkKind::c2c:
      return "#8a4fb0";
    case LinkKind::socket:
      return "#2f6fb5";
    default:
      return "#7d8590";
  }
}

class Drawing {
 public:
  explicit Drawing(const Topology& topology)
      : topology_(topology), layout_(topology), back_(links_back(topology)) {
    for (const Link& link : topology.links)
      if (link.kind != LinkKind::inside) fastest_ = std::max(fastest_, link.bytes_per_second);
  }

  std::string text() {
    text_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
        "width=\"{0:.0f}\" "
        "height=\"{1:.0f}\" font-family=\"sans-serif\" font-size=\"12\" text-anchor=\"middle\">\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
        layout_.width(), layout_.height());
    for (std::size_t i = 0; i < topology_.links.size(); ++i)
      if (is_drawn(topology_, back_, i)) line(static_cast<int>(i));
    text_ += labels_;
    for (std::size_t i = 0; i < topology_.sites.size(); ++i) box(static_cast<int>(i));
    text_ += fmt::format(
        "<text x=\"{}\" y=\"{:.0f}\" text-anchor=\"start\" font-size=\"11\">GB/s each way; wide "
        "lines "
        "are fast.{}</text>\n",
        margin, layout_.height() - 12, legend());
    return std::move(text_) + "</svg>\n";
  }

 private:
  bool is_between(const Link& link, SiteKind one, SiteKind other) const {
    const SiteKind from = topology_.site(link.from).kind, to = topology_.site(link.to).kind;
    return (from == one && to == other) || (from == other && to == one);
  }
  std::string legend() const;
  void line(int index);
  void box(int index);
  std::string curve(const Link& link, double& label_x, double& label_y) const;

  const Topology& topology_;
  Layout layout_;
  std::vector<int> back_;
  double fastest_ = 1;
  std::string text_, labels_;
};

/// The kinds of links that there are, each in its colour, with the rates between GPUs.
std::string Drawing::legend() const {
  std::string legend;
  for (const LinkKind kind :
       {LinkKind::pci, LinkKind::socket, LinkKind::nvlink, LinkKind::xgmi, LinkKind::c2c}) {
    bool used = false;
    std::set<double> rates;
    for (const Link& link : topology_.links) {
      if (link.kind != kind) continue;
      used = true;
      if (is_between(link, SiteKind::gpu, SiteKind::gpu)) rates.insert(link.bytes_per_second);
    }
    if (!used) continue;
    std::string between;
    if (!rates.empty()) between = " " + gigabytes(*rates.begin());
    if (rates.size() > 1) between += " to " + gigabytes(*rates.rbegin());
    legend += fmt::format("  <tspan fill=\"{}\" font-weight=\"bold\">{}{}</tspan>", colour_of(kind),
                          name(kind), between);
  }
  return legend;
}

std::string Drawing::curve(const Link& link, double& label_x, double& label_y) const {
  const Place &from = layout_.of(link.from), &to = layout_.of(link.to);
  const double below = box_height / 2;
  if (link.kind == LinkKind::socket && from.y == to.y) {  // an arch above the CPUs
    const double left = from.x + from.width / 2, right = to.x - to.width / 2;
    label_x = (left + right) / 2;
    label_y = from.y - 8;
    if (right - left < column / 2) return fmt::format("M{} {}H{}", left, from.y, right);
    const double top = from.y - below;
    const double height = std::min(highest_arch, 20 + std::abs(to.x - from.x) * .03);
    label_y = top - height + 4;
    return fmt::format("M{0:.1f} {1}C{0:.1f} {2:.1f} {3:.1f} {2:.1f} {3:.1f} {1}", from.x, top,
                       top - height / .75, to.x);
  }
  if (from.y == to.y) {  // between GPUs: an arc below them
    const double left = layout_.arc_end(link.from, link.to), y = from.y + below;
    const double right = layout_.arc_end(link.to, link.from);
    // A curve reaches three quarters of the way to the points that pull it.
    const double pull = y + layout_.depth(link.from, link.to) / .75;
    label_x = (left + right) / 2;
    label_y = y + layout_.depth(link.from, link.to) + 9;
    return fmt::format("M{0:.1f} {1}C{0:.1f} {2:.1f} {3:.1f} {2:.1f} {3:.1f} {1}", left, y, pull,
                       right);
  }
  const bool wide_from = from.width > box_width, wide_to = to.width > box_width;
  const double x0 = wide_from ? to.x : from.x, x1 = wide_to ? from.x : to.x;
  const double y0 = from.y + (from.y < to.y ? below : -below);
  const double y1 = to.y + (to.y < from.y ? below : -below);
  // Beside the PCIe link, which may lead the same way.
  const double shift =
      is_between(link, SiteKind::gpu, SiteKind::cpu) && link.kind != LinkKind::pci ? 14 : 0;
  label_x = (y0 > y1 ? x0 : x1) + 2 * shift;
  label_y = std::max(y0, y1) - 8;
  return fmt::format("M{} {}L{} {}", x0 + shift, y0, x1 + shift, y1);
}

void Drawing::line(int index) {
  const Link& link = topology_.links[static_cast<std::size_t>(index)];
  double x = 0, y = 0;
  const std::string path = curve(link, x, y);
  const double width = 1 + 9 * std::sqrt(std::min(1.0, link.bytes_per_second / fastest_));
  const bool inside = link.kind == LinkKind::inside;
  const bool one_way = back_[static_cast<std::size_t>(index)] < 0;
  text_ += fmt::format(
      "<path id=\"link{}\" d=\"{}\" stroke=\"{}\" stroke-width=\"{:.1f}\" fill=\"none\" "
      "stroke-linecap=\"round\" opacity=\".75\"{}><title>{} {} {}: {} {} GB/s {} "
      "way</title></path>\n",
      index, path, colour_of(link.kind), inside ? 1 : width,
      inside ? " stroke-dasharray=\"3 4\"" : "", topology_.site(link.from).name,
      one_way ? "&gt;" : "-", topology_.site(link.to).name, name(link.kind),
      gigabytes(link.bytes_per_second), one_way ? "one" : "each");
  const bool crowded =
      is_between(link, SiteKind::gpu, SiteKind::gpu);  // the legend has their rates
  if (inside || link.kind == LinkKind::port || crowded) return;
  labels_ += fmt::format(
      "<text x=\"{}\" y=\"{}\" font-size=\"10\" fill=\"#333\" stroke=\"#fff\" stroke-width=\"3\" "
      "paint-order=\"stroke\">{}</text>\n",
      x, y, gigabytes(link.bytes_per_second));
}

void Drawing::box(int index) {
  static constexpr std::array<std::string_view, 7> fills = {
      "#dbe9f9", "#eceff2", "#dff0d2", "#fdecc8", "#fff7e3", "#cfe8c0", "#e7defa"};
  const Site& site = topology_.site(index);
  const Place& place = layout_.of(index);
  const bool port = site.kind == SiteKind::port;
  const double height = port ? port_height : box_height;
  std::string_view second = site.fact(site.kind == SiteKind::cpu ? "vendor" : "busid");
  if (site.kind == SiteKind::fabric) second = {};
  const std::string first = port && !site.fact("name").empty()
                                ? escaped(site.fact("name").substr(0, 13))
                                : escaped(site.name);
  text_ += fmt::format(
      "<g><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" rx=\"6\" fill=\"{}\" "
      "stroke=\"#56606b\"/><text x=\"{:.1f}\" y=\"{:.1f}\"{}>{}</text>",
      place.x - place.width / 2, place.y - height / 2, place.width, height,
      fills[static_cast<std::size_t>(site.kind)], place.x,
      place.y + (second.empty() || port ? 4 : -3), port ? " font-size=\"10\"" : "", first);
  if (!second.empty() && !port)
    text_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"9\" fill=\"#555\">{}</text>",
                         place.x, place.y + 12, escaped(second));
  text_ += "</g>\n";
}

}  // namespace

std::vector<int> links_back(const Topology& topology) {
  std::map<std::tuple<int, int, LinkKind>, int> by_ends;
  for (std::size_t i = 0; i < topology.links.size(); ++i) {
    const Link& link = topology.links[i];
    by_ends[{link.from, link.to, link.kind}] = static_cast<int>(i);
  }
  std::vector<int> back;
  for (const Link& link : topology.links) {
    const auto found = by_ends.find({link.to, link.from, link.kind});
    back.push_back(found == by_ends.end() ? -1 : found->second);
  }
  return back;
}

bool is_drawn(const Topology& topology, const std::vector<int>& back, std::size_t link) {
  return back[link] < 0 || topology.links[link].from < topology.links[link].to;
}

std::string escaped(std::string_view text) {
  std::string escaped;
  for (const char c : printable(text)) switch (c) {
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '&':
        escaped += "&amp;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  return escaped;
}

std::string svg_of(const Topology& topology) { return Drawing(topology).text(); }

}  // namespace khoro::tool
