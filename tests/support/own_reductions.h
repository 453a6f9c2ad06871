// SPDX-License-Identifier: Apache-2.0
// The functions of reductions that the ranks of a case make.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/dtype.h"
#include "support/scalar.h"

namespace khoro::test {

/// Commutes, and is as little associative as a sum of floats: it shows in which order it is called.
inline std::uint64_t mingle(std::uint64_t left, std::uint64_t right) {
  return left + right + (left & right);
}
/// Does not commute.
inline std::uint64_t append(std::uint64_t left, std::uint64_t right) { return 31 * left + right; }

/// Elements as a caller's function gets them; ends the process if they lie where their type may
/// not.
template <class Bits>
void reduce_bits(BitFunction function, const void* in, void* inout, std::size_t count) {
  for (const void* each : {in, static_cast<const void*>(inout)})
    if (reinterpret_cast<std::uintptr_t>(each) % sizeof(Bits) != 0) std::abort();
  const auto* const right = static_cast<const Bits*>(in);
  auto* const left = static_cast<Bits*>(inout);
  for (std::size_t i = 0; i < count; ++i) left[i] = static_cast<Bits>(function(left[i], right[i]));
}

inline void reduce_bits(BitFunction function, Dtype dtype, const void* in, void* inout,
                        std::size_t count) {
  switch (find(dtype)->bytes) {
    case 1:
      return reduce_bits<std::uint8_t>(function, in, inout, count);
    case 2:
      return reduce_bits<std::uint16_t>(function, in, inout, count);
    case 4:
      return reduce_bits<std::uint32_t>(function, in, inout, count);
    default:
      return reduce_bits<std::uint64_t>(function, in, inout, count);
  }
}

}  // namespace khoro::test
