// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <span>

#include "topology/formats/nccl_links.h"
#include "topology/formats/nccl_rules.h"

namespace khoro::nccl {
namespace {

LinkKind kind_of(pugi::xml_node element) {
  const std::string_view word = element.name();
  return word == name(LinkKind::xgmi)  ? LinkKind::xgmi
         : word == name(LinkKind::c2c) ? LinkKind::c2c
                                       : LinkKind::nvlink;
}

/// A GPU has one rate for all of its links to the CPU.
void take_rate(const Facts& of_link, Site& gpu, Position where, Findings& findings) {
  const auto rate = of_link.find("bw");
  if (rate == of_link.end()) {
    findings.warn(where, gpu.name, "<c2c> without bw: its rate is not known");
    return;
  }
  const auto [known, is_new] = gpu.facts.try_emplace("c2c_bw", rate->second);
  if (known->second != rate->second)
    findings.warn(where, gpu.name,
                  fmt::format("bw {} of <c2c>, after one of {}: that one counts", rate->second,
                              known->second));
}

}  // namespace

LinkClaim read_claim(const XmlText& xml, pugi::xml_node element, Site& gpu, Findings& findings) {
  LinkClaim claim;
  claim.kind = kind_of(element);
  claim.where = xml.of(element);
  const bool to_cpu = claim.kind == LinkKind::c2c;
  const auto rules = to_cpu ? std::span<const AttributeRule>(c2c_rules) : link_rules;
  Facts facts = read_attributes(xml, element, rules, gpu.name, findings);
  facts.try_emplace("count", "1");
  if (!element.attribute("count"))
    findings.warn(claim.where, gpu.name,
                  fmt::format("<{}> without count: taken for one link", name(claim.kind)));
  claim.count = static_cast<int>(integer_of(facts["count"]).value_or(0));
  claim.target_class = facts["tclass"];
  claim.target = to_cpu ? "the CPU" : facts["target"];
  if (to_cpu) take_rate(facts, gpu, claim.where, findings);
  if (claim.target.empty())
    findings.error(
        claim.where, gpu.name,
        fmt::format("<{}> without target: give the bus id of its other end", name(claim.kind)));
  return claim;
}

}  // namespace khoro::nccl
