// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace khoro {

/// What a PCI device id says of the GPU chip behind it, for texts that name no more: "sm" as
/// "90" (NVIDIA), "gcn" as "gfx942" (AMD); empty if it is not known.
struct Chip {
  std::string_view sm;
  std::string_view gcn;
};

/// Ids as texts have them: "0x10de", "0x2330".
Chip chip_of(std::string_view vendor, std::string_view device);

}  // namespace khoro
