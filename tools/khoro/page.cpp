// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "drawing.h"

namespace khoro::tool {
namespace {

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
