// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "base/dtype.h"

namespace khoro {

/// A reduction that a caller has made: Reduction::premul or Reduction::user.
struct OwnReduction {
  Reduction kind = Reduction::premul;

  // Of premul.
  Dtype dtype = Dtype::f32;
  std::array<std::byte, 8> factor{};  // an element of the dtype; each rank has its own
  /// Where the factor is read whenever a call is made; null if it was read already. Borrowed.
  const void* scalar = nullptr;

  // Of user.
  /// inout[i] = inout[i] op in[i]. Both suit the type in their alignment.
  std::function<void(const void* in, void* inout, std::size_t count, Dtype dtype)> function;
  std::uint64_t name_hash = 0;
  bool commutative = true;
};

}  // namespace khoro
