// SPDX-License-Identifier: Apache-2.0
#include "device/fold.h"

#include <array>

#include "device/loops.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace khoro {
namespace {

#if defined(__x86_64__)
/// Not every compiler knows it by name.
bool has_f16c() noexcept {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

std::size_t count_instruction_sets() noexcept {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi2") || !has_f16c()) return 1;
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return wide ? 3 : 2;
#else
  return 1;
#endif
}

}  // namespace

std::string_view name(InstructionSet set) noexcept {
  constexpr std::array<std::string_view, 3> names{"baseline", "avx2", "avx512"};
  return names[static_cast<std::size_t>(set)];
}

std::span<const InstructionSet> instruction_sets() noexcept {
  static constexpr std::array all{InstructionSet::baseline, InstructionSet::avx2,
                                  InstructionSet::avx512};
  static const std::size_t count = count_instruction_sets();
  return std::span(all).first(count);
}

Fold find_fold(Dtype dtype, Reduction reduction, InstructionSet set, Partials partials) noexcept {
#if defined(__x86_64__)
  if (set == InstructionSet::avx512) return find_fold_avx512(dtype, reduction, partials);
  if (set == InstructionSet::avx2) return find_fold_avx2(dtype, reduction, partials);
#endif
  (void)set;
  return find_fold_baseline(dtype, reduction, partials);
}

}  // namespace khoro
