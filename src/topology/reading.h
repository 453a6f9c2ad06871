// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/diagnostic.h"
#include "topology/topology.h"

namespace khoro {

/// Bytes of text that readers take.
inline constexpr std::size_t most_topology_bytes = std::size_t{16} << 20;

/// What a reader made of a text: a topology as the text has it, which normalise() then repairs. It
/// is present unless a diagnostic is an error.
struct Reading {
  std::optional<Topology> topology;
  std::vector<Diagnostic> diagnostics;
};

}  // namespace khoro
