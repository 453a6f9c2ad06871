// SPDX-License-Identifier: Apache-2.0
#include "topology/rates.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>

namespace khoro {
namespace {

struct Step {
  long from;  // the least number that it holds for
  double bytes_per_second;
};

/// Of the last step that begins at or below `number`.
template <std::size_t size>
double last_step(const std::array<Step, size>& steps, long number) noexcept {
  const auto above = std::find_if(steps.begin() + 1, steps.end(),
                                  [number](const Step& step) { return step.from > number; });
  return std::prev(above)->bytes_per_second;
}

/// Bytes per second and lane, by tenths of a GT/s.
constexpr std::array<Step, 6> lane_rates = {
    {{25, .1875e9}, {50, .375e9}, {80, .75e9}, {160, 1.5e9}, {320, 3e9}, {640, 6e9}}};

/// By compute capability, ten times major and minor.
constexpr std::array<Step, 6> nvlink_rates = {
    {{0, 18e9}, {70, 20e9}, {86, 12e9}, {87, 20e9}, {90, 20.6e9}, {100, 40.1e9}}};

/// By the three digits of a gfx name.
constexpr std::array<Step, 3> xgmi_rates = {{{0, 24e9}, {0x90a, 36e9}, {0x940, 48e9}}};

/// Of Intel's family 6, by model: Broadwell and before, Skylake to Ice Lake, Sapphire Rapids,
/// Emerald Rapids and what came after it.
constexpr std::array<Step, 4> intel_rates = {{{0, 6e9}, {85, 10e9}, {143, 22e9}, {207, 40e9}}};

/// "gfx942", "942" and "910" (as RCCL writes gfx90a) as hexadecimal digits.
long gfx_digits(const Site& gpu) {
  std::string_view text = gpu.fact("gcn");
  if (text.empty()) text = gpu.fact("arch");
  if (text.starts_with("gfx")) text.remove_prefix(3);
  long digits = 0;
  std::from_chars(text.data(), text.data() + text.size(), digits, 16);
  return digits;
}

}  // namespace

std::optional<long> leading_number(std::string_view text) noexcept {
  long number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

std::optional<long> number_of(const Site& site, std::string_view key) {
  return leading_number(site.fact(key));
}

std::optional<double> pci_rate(std::string_view link_speed, std::string_view link_width) noexcept {
  const std::optional<long> whole = leading_number(link_speed), width = leading_number(link_width);
  if (!whole || !width || *width < 1 || *width > 32) return std::nullopt;
  const std::size_t point = link_speed.find('.');
  const bool half = point != link_speed.npos && link_speed.substr(point + 1).starts_with('5');
  const long tenths = std::clamp(*whole, 0L, 1000L) * 10 + (half ? 5 : 0);
  const auto row = std::find_if(lane_rates.begin(), lane_rates.end(),
                                [tenths](const Step& step) { return step.from == tenths; });
  if (row == lane_rates.end()) return std::nullopt;
  return row->bytes_per_second * static_cast<double>(*width);
}

double nvlink_rate(const Site& gpu) noexcept {
  return last_step(nvlink_rates, number_of(gpu, "sm").value_or(80));
}

double xgmi_rate(const Site& gpu) noexcept {
  const long digits = gfx_digits(gpu);
  // MI200 is gfx90a, which RCCL's files call 910.
  return last_step(xgmi_rates, digits == 0x910 ? 0x90a : digits);
}

double socket_rate(const Site& cpu) noexcept {
  const std::string_view arch = cpu.fact("arch"), vendor = cpu.fact("vendor");
  if (arch == "arm64") return 6e9;
  if (arch == "ppc64") return 32e9;
  if (vendor.find("Intel") != vendor.npos)
    return last_step(intel_rates, number_of(cpu, "modelid").value_or(85));
  if (vendor.find("haoxin") != vendor.npos || vendor.find("Shanghai") != vendor.npos) return 6e9;
  // AMD's; and that of a vendor unknown here: finite, so that no ring takes it for free.
  return 16e9;
}

double usual_latency(LinkKind kind) noexcept {
  switch (kind) {
    case LinkKind::nvlink:
    case LinkKind::xgmi:
    case LinkKind::c2c:
      return 0.3e-6;
    case LinkKind::pci:
      return 0.25e-6;
    case LinkKind::socket:
      return 0.2e-6;
    case LinkKind::network:
      return 1e-6;
    case LinkKind::port:
    case LinkKind::inside:
      break;
  }
  return 0;
}

}  // namespace khoro
