// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "topology/topology.h"

namespace khoro {

/// Bytes per second of payload, one way, that a link of each kind moves while its other way is busy
/// as well: what was measured on such machines, not what data sheets say. All are for one link of
/// its kind.

/// Of a PCIe link: "16.0 GT/s PCIe" and "16". Nothing if either cannot be understood, or is 0.
std::optional<double> pci_rate(std::string_view link_speed, std::string_view link_width) noexcept;
/// What a PCIe link is taken for of which nothing is known: 8 GT/s, 16 lanes.
inline constexpr double usual_pci_rate = 12e9;

/// Of a GPU's NVLink, by its "sm"; one xGMI link, by its "gcn" or "arch".
double nvlink_rate(const Site& gpu) noexcept;
double xgmi_rate(const Site& gpu) noexcept;
/// Between the CPUs of a machine, by vendor, family and model.
double socket_rate(const Site& cpu) noexcept;

/// Between parts of one device, or a device without a bus and its CPU: no limit for any other link.
inline constexpr double inside_rate = 5000e9;
/// Between the two halves of a GPU that MLOPart split.
inline constexpr double halves_rate = 2618e9;

/// Seconds that a link of a kind adds to a message. Orders of magnitude: they tell a hop from a
/// dozen, and one bus from another.
double usual_latency(LinkKind kind) noexcept;

/// The decimal number that `text` begins with. Nothing if it begins with none.
std::optional<long> leading_number(std::string_view text) noexcept;
/// That of a fact.
std::optional<long> number_of(const Site& site, std::string_view key);

}  // namespace khoro
