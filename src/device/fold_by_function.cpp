// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "base/own_reduction.h"
#include "device/fold.h"

namespace khoro {
namespace {

constexpr std::size_t block_bytes = 8192;
using Block = std::array<std::byte, block_bytes>;

}  // namespace

void fold_by_function(std::byte* to, Form, const Operand* operands, std::size_t operand_count,
                      std::size_t first, std::size_t elements, std::uint32_t,
                      const OwnFold& own) noexcept {
  const std::size_t size = find(own.dtype)->bytes;
  if (operand_count == 1) {
    const std::byte* const from = operands[0].data;
    if (to != from) std::memcpy(to + first * size, from + first * size, elements * size);
    return;
  }
  alignas(64) Block value;
  alignas(64) Block copy;
  for (std::size_t done = 0; done < elements;) {
    const std::size_t count = std::min(block_bytes / size, elements - done);
    const std::size_t at = (first + done) * size, bytes = count * size;
    std::memcpy(value.data(), operands[0].data + at, bytes);
    for (std::size_t k = 1; k < operand_count; ++k) {
      const std::byte* in = operands[k].data + at;
      if (reinterpret_cast<std::uintptr_t>(in) % size != 0)
        in = static_cast<const std::byte*>(std::memcpy(copy.data(), in, bytes));
      own.reduction->function(in, value.data(), count, own.dtype);
    }
    std::memcpy(to + at, value.data(), bytes);
    done += count;
  }
}

}  // namespace khoro
