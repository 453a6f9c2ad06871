// SPDX-License-Identifier: Apache-2.0
#include "device/f16c.h"
#include "device/loops.h"

namespace khoro {
namespace {

template <class T, class Operation>
[[gnu::target("avx2,bmi,bmi2,lzcnt,movbe,f16c")]] void fold(
    std::byte* to, Form form, const Operand* operands, std::size_t operand_count, std::size_t first,
    std::size_t elements, std::uint32_t divisor, const OwnFold& own) noexcept {
  run_loops<T, Operation, F16cConversions>(to, form, operands, operand_count, first, elements,
                                           divisor, own);
}

}  // namespace

Fold find_fold_avx2(Dtype dtype, Reduction reduction, Partials partials) noexcept {
  return visit(dtype, reduction, partials,
               []<class T, class Operation>(T, Operation) -> Fold { return fold<T, Operation>; });
}

}  // namespace khoro
