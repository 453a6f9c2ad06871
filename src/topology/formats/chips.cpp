// SPDX-License-Identifier: Apache-2.0
#include "topology/formats/chips.h"

#include <array>

#include "topology/formats/attributes.h"

namespace khoro {
namespace {

/// The device ids from `first` to `last` belong to boards with one kind of chip.
struct Range {
  int first;
  int last;
  std::string_view generation;
};

constexpr std::array<Range, 15> nvidia = {{
    {0x15f0, 0x15ff, "60"},
    {0x1b00, 0x1d7f, "61"},
    {0x1d80, 0x1dff, "70"},
    {0x1e00, 0x1fff, "75"},
    {0x2080, 0x20ff, "80"},
    {0x2180, 0x21ff, "75"},
    {0x2200, 0x22ff, "86"},
    {0x2300, 0x23ff, "90"},
    {0x2400, 0x25ff, "86"},
    {0x2600, 0x28ff, "89"},
    {0x2900, 0x29ff, "100"},
    {0x2b00, 0x2dff, "120"},
    {0x2e00, 0x2eff, "121"},
    {0x2f00, 0x2fff, "120"},
    {0x3180, 0x31ff, "103"},
}};

constexpr std::array<Range, 5> amd = {{
    {0x66a0, 0x66af, "906"},
    {0x7388, 0x7390, "908"},
    {0x7400, 0x740f, "910"},
    {0x74a0, 0x74bf, "gfx942"},
    {0x75a0, 0x75bf, "gfx950"},
}};

template <std::size_t size>
std::string_view generation(const std::array<Range, size>& ranges, long long id) {
  for (const Range& range : ranges)
    if (id >= range.first && id <= range.last) return range.generation;
  return {};
}

}  // namespace

Chip chip_of(std::string_view vendor, std::string_view device) {
  const long long id = integer_of(device).value_or(-1);
  Chip chip;
  if (vendor == "0x10de") chip.sm = generation(nvidia, id);
  if (vendor == "0x1002") chip.gcn = generation(amd, id);
  return chip;
}

}  // namespace khoro
