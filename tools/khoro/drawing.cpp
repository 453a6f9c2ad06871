// SPDX-License-Identifier: Apache-2.0
#include "drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <tuple>

#include "topo.h"

namespace khoro::tool {
namespace {

constexpr double column = 104, row = 84, box_width = 88, box_height = 40, margin = 40;

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

struct Place {
  double x = 0, y = 0;
  double width = box_width;
};

/// Where everything stands.
class Layout {
 public:
  explicit Layout(const Topology& topology)
      : topology_(topology), parents_(topology.parents()), places_(topology.sites.size()) {
    children_.resize(places_.size());
    for (std::size_t i = 0; i < parents_.size(); ++i)
      if (parents_[i] >= 0) children_[index(parents_[i])].push_back(static_cast<int>(i));
    for (const int cpu : topology.sites_of(SiteKind::cpu)) depth_ = std::max(depth_, deepest(cpu));
    for (const int cpu : topology.sites_of(SiteKind::cpu)) put(cpu, 0);
    put_unattached();
    put_fabrics();
  }

  const Place& of(int site) const { return places_[index(site)]; }
  double width() const { return next_column_ * column + 2 * margin; }
  double device_y() const { return margin + depth_ * row; }
  double height() const { return height_; }

 private:
  static std::size_t index(int site) { return static_cast<std::size_t>(site); }
  bool is_device(int site) const {
    const SiteKind kind = topology_.site(site).kind;
    return kind == SiteKind::gpu || kind == SiteKind::nic;
  }

  /// Rows from a site down to the row of devices.
  int deepest(int site) const {
    if (is_device(site)) return 0;
    int rows = 0;
    for (const int child : children_[index(site)])
      if (topology_.site(child).kind != SiteKind::port) rows = std::max(rows, 1 + deepest(child));
    return rows;
  }

  void put_column(int site, double y) {
    places_[index(site)] = {margin + (next_column_ + .5) * column, y, box_width};
    ++next_column_;
  }

  void put(int site, int level) {
    const double left = next_column_;
    const double y = is_device(site) ? device_y() : margin + level * row;
    for (const int child : children_[index(site)])
      if (topology_.site(child).kind != SiteKind::port) put(child, level + 1);
    if (next_column_ == left) {
      put_column(site, y);
    } else {
      places_[index(site)] = {margin + (left + next_column_) / 2 * column, y, box_width};
      if (topology_.site(site).kind == SiteKind::cpu)
        places_[index(site)].width = (next_column_ - left) * column - (column - box_width);
    }
    int ports = 0;
    for (const int child : children_[index(site)])
      if (topology_.site(child).kind == SiteKind::port)
        places_[index(child)] = {of(site).x, device_y() + row * .7 + 22 * ports++, box_width};
  }

  void put_unattached() {
    for (std::size_t i = 0; i < parents_.size(); ++i) {
      const SiteKind kind = topology_.sites[i].kind;
      if (parents_[i] < 0 && kind != SiteKind::cpu && kind != SiteKind::fabric)
        put_column(static_cast<int>(i), device_y());
    }
  }

  void put_fabrics() {
    height_ = device_y() + 2.2 * row + margin;
    for (const int fabric : topology_.sites_of(SiteKind::fabric)) {
      double left = 1e9, right = 0;
      for (const Link& link : topology_.links)
        if (link.from == fabric) {
          left = std::min(left, of(link.to).x);
          right = std::max(right, of(link.to).x);
        }
      places_[index(fabric)] = {(left + right) / 2, device_y() + 2.4 * row,
                                right - left + box_width};
      height_ = device_y() + 3 * row + margin;
    }
  }

  const Topology& topology_;
  std::vector<int> parents_;
  std::vector<std::vector<int>> children_;
  std::vector<Place> places_;
  int depth_ = 0;
  double next_column_ = 0;
  double height_ = 0;
};

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

/// The kinds of links that there are, each in its colour.
std::string Drawing::legend() const {
  std::string legend;
  for (const LinkKind kind :
       {LinkKind::pci, LinkKind::socket, LinkKind::nvlink, LinkKind::xgmi, LinkKind::c2c}) {
    const bool used = std::any_of(topology_.links.begin(), topology_.links.end(),
                                  [kind](const Link& link) { return link.kind == kind; });
    if (used)
      legend += fmt::format("  <tspan fill=\"{}\" font-weight=\"bold\">{}</tspan>", colour_of(kind),
                            name(kind));
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
    label_y = from.y - below - 12;
    return fmt::format("M{} {}Q{} {} {} {}", from.x, from.y - below, label_x,
                       from.y - 2 * below - 14, to.x, to.y - below);
  }
  if (from.y == to.y) {  // between GPUs: an arch below them
    const double sag = 30 + std::abs(to.x - from.x) * .2;
    label_x = (from.x + to.x) / 2;
    label_y = from.y + below + sag / 2 + 9;
    return fmt::format("M{} {}Q{} {} {} {}", from.x, from.y + below, label_x, from.y + below + sag,
                       to.x, to.y + below);
  }
  const bool wide_from = from.width > box_width, wide_to = to.width > box_width;
  const double x0 = wide_from ? to.x : from.x, x1 = wide_to ? from.x : to.x;
  const double y0 = from.y + (from.y < to.y ? below : -below);
  const double y1 = to.y + (to.y < from.y ? below : -below);
  const double shift = link.kind == LinkKind::c2c ? 14 : 0;
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
  const bool crowded = link.kind == LinkKind::nvlink || link.kind == LinkKind::xgmi;
  const bool to_fabric = topology_.site(link.to).kind == SiteKind::fabric;
  if (inside || link.kind == LinkKind::port || (crowded && !to_fabric)) return;
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
  const double height = port ? 20 : box_height;
  std::string_view second = site.fact(site.kind == SiteKind::cpu ? "vendor" : "busid");
  if (site.kind == SiteKind::fabric) second = {};
  const std::string first = port && !site.fact("name").empty()
                                ? escaped(site.fact("name").substr(0, 14))
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

/// The script of the page: `channels` and `rates` are put before it.
constexpr const char* script = R"(
const picker = document.getElementById('channel');
const note = document.getElementById('note');
const line = i => document.getElementById('link' + i) || document.getElementById('link' + back[i]);
const original = new Map();
document.querySelectorAll('path[id^=link]').forEach(p => original.set(p, p.getAttribute('stroke')));
const load = rates.map(() => 0);
channels.forEach(c => c.links.forEach(i => load[i] += c.rate));
function heat(share) { const s = Math.min(1, share); return `hsl(${120 - 120 * s}, 75%, 45%)`; }
function reset(opacity) {
  original.forEach((stroke, p) => { p.setAttribute('stroke', stroke); p.setAttribute('opacity', opacity); });
}
function show() {
  const chosen = picker.value;
  reset(chosen === 'machine' ? .75 : .12);
  if (chosen === 'machine') { note.textContent = 'Widths are rates. Point at a link to read its own.'; return; }
  const share = new Map();
  const count = (i, rate) => { const p = line(i); if (p) share.set(p, Math.max(share.get(p) || 0, rate / rates[i])); };
  if (chosen === 'load') {
    load.forEach((l, i) => { if (l > 0) count(i, l); });
    note.textContent = 'All channels together: green links are little used, red ones fully.';
  } else {
    const c = channels[chosen];
    c.links.forEach(i => count(i, c.rate));
    note.textContent = `${c.name}: ${(c.rate / 1e9).toFixed(1)} GB/s on each of its hops.`;
  }
  share.forEach((s, p) => { p.setAttribute('stroke', heat(s)); p.setAttribute('opacity', 1); });
}
picker.onchange = show;
show();
)";

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

std::string svg_of(const Topology& topology) { return Drawing(topology).text(); }

std::string html_of(const Topology& topology, const std::vector<DrawnChannel>& channels,
                    const std::string& title) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  std::string options = "<option value=\"machine\">the machine</option>";
  if (!channels.empty()) options += "<option value=\"load\">load of all channels</option>";
  for (std::size_t i = 0; i < channels.size(); ++i) {
    all.push_back({{"name", channels[i].name},
                   {"rate", channels[i].bytes_per_second},
                   {"links", channels[i].links}});
    options += fmt::format("<option value=\"{}\">{}</option>", i, escaped(channels[i].name));
  }
  std::vector<double> rates;
  for (const Link& link : topology.links) rates.push_back(link.bytes_per_second);
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title>\n"
      "<style>body{{font-family:sans-serif;margin:1em}}select{{font-size:1em}}"
      "svg{{max-width:100%;height:auto}}path:hover{{opacity:1}}</style></head>\n"
      "<body><h1>{0}</h1><p><label>Show <select id=\"channel\">{1}</select></label> "
      "<span id=\"note\"></span></p>\n{2}<script>\nconst channels = {3};\nconst rates = {4};\n"
      "const back = {5};{6}</script></body></html>\n",
      escaped(title), options, svg_of(topology), all.dump(), nlohmann::json(rates).dump(),
      nlohmann::json(links_back(topology)).dump(), script);
}

}  // namespace khoro::tool
