// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/dtype.h"

namespace khoro {

struct OwnReduction;

/// Elements that are to be folded, at any byte alignment.
struct Operand {
  const std::byte* data = nullptr;
  Form form = Form::dtype;
  /// The rank's own factor is applied, of Reduction::premul.
  bool premul = false;
};

/// What a reduction that a caller has made needs besides.
struct OwnFold {
  Dtype dtype = Dtype::f32;
  const OwnReduction* reduction = nullptr;
};

/// For the `elements` from `first` on: to[i] = operands[0][i] op operands[1][i] op ..., from left
/// to right in the accumulator, divided by `divisor` unless that is 0 (as it is but for avg),
/// rounded once to `form`. `to` is disjoint from each operand, or exactly the same memory. One
/// operand is a copy, of any bits, or a conversion. Runs with the default floating-point control
/// word and leaves the caller's as it was.
using Fold = void (*)(std::byte* to, Form form, const Operand* operands, std::size_t operand_count,
                      std::size_t first, std::size_t elements, std::uint32_t divisor,
                      const OwnFold& own) noexcept;

/// Of Reduction::user, whose partial results are of the dtype. Runs with the caller's control word.
void fold_by_function(std::byte* to, Form form, const Operand* operands, std::size_t operand_count,
                      std::size_t first, std::size_t elements, std::uint32_t divisor,
                      const OwnFold& own) noexcept;

/// For which processors a kernel was compiled.
enum class InstructionSet : std::uint8_t { baseline, avx2, avx512 };
std::string_view name(InstructionSet set) noexcept;

/// Those that this processor has, the best one last. Never empty.
std::span<const InstructionSet> instruction_sets() noexcept;

/// The kernel of a dtype and a reduction that applies to it, other than Reduction::user; the same
/// bits whatever the instruction set. Never null.
Fold find_fold(Dtype dtype, Reduction reduction, InstructionSet set,
               Partials partials = Partials::dtype) noexcept;
inline Fold find_fold(Dtype dtype, Reduction reduction,
                      Partials partials = Partials::dtype) noexcept {
  return find_fold(dtype, reduction, instruction_sets().back(), partials);
}

}  // namespace khoro
