// SPDX-License-Identifier: Apache-2.0
#include "device/fold.h"

#include <algorithm>
#include <array>
#include <cfenv>
#include <cstring>
#include <utility>

#include "device/arithmetic.h"

namespace khoro {
namespace {

/// Elements of one pass through the accumulator: it stays in the first-level cache.
constexpr std::size_t block = 1024;

template <class Memory, class Accumulator>
[[gnu::always_inline]] inline Accumulator load(const std::byte* data, std::size_t i) noexcept {
  Memory value;
  std::memcpy(&value, data + i * sizeof(Memory), sizeof(Memory));
  return convert<Accumulator>(value);
}

template <class Memory, class Accumulator>
[[gnu::always_inline]] inline void store(std::byte* data, std::size_t i, Accumulator x) noexcept {
  const Memory value = convert<Memory>(x);
  std::memcpy(data + i * sizeof(Memory), &value, sizeof(Memory));
}

/// The loops of one (types, operation). All are inlined into the entry points below, which differ
/// only in the instructions they may use.
template <class T, class Operation>
struct Loops {
  using Element = typename T::Element;
  using Carry = typename T::Carry;
  using Accumulator = typename T::Accumulator;
  /// Whether elements and partial results are the same in memory.
  static constexpr bool alike = std::is_same_v<Element, Carry>;

  /// All operands and the result in one pass, without an accumulator in memory.
  template <bool divides, std::size_t... index>
  [[gnu::always_inline]] static void direct(std::byte* to, const Operand* operands,
                                            std::size_t begin, std::size_t elements,
                                            std::uint32_t divisor,
                                            std::index_sequence<index...>) noexcept {
    const std::size_t skipped = begin * sizeof(Element);
    const std::byte* const first = operands[0].data + skipped;
    const std::array<const std::byte*, sizeof...(index)> rest{operands[index + 1].data +
                                                              skipped...};
    to += skipped;
#pragma omp simd
    for (std::size_t i = 0; i < elements; ++i) {
      Accumulator value = load<Element, Accumulator>(first, i);
      ((value = Operation::apply(value, load<Element, Accumulator>(rest[index], i))), ...);
      if constexpr (divides) value = divide(value, divisor);
      store<Element>(to, i, value);
    }
  }

  template <std::size_t count>
  [[gnu::always_inline]] static void direct(std::byte* to, const Operand* operands,
                                            std::size_t begin, std::size_t elements,
                                            std::uint32_t divisor) noexcept {
    constexpr std::make_index_sequence<count - 1> rest;
    if (divisor == 0)
      direct<false>(to, operands, begin, elements, divisor, rest);
    else
      direct<true>(to, operands, begin, elements, divisor, rest);
  }

  template <class Memory>
  [[gnu::always_inline]] static void start(Accumulator* values, const std::byte* data,
                                           std::size_t elements) noexcept {
#pragma omp simd
    for (std::size_t i = 0; i < elements; ++i) values[i] = load<Memory, Accumulator>(data, i);
  }
  template <class Memory>
  [[gnu::always_inline]] static void go_on(Accumulator* values, const std::byte* data,
                                           std::size_t elements) noexcept {
#pragma omp simd
    for (std::size_t i = 0; i < elements; ++i)
      values[i] = Operation::apply(values[i], load<Memory, Accumulator>(data, i));
  }
  template <class Memory>
  [[gnu::always_inline]] static void end(std::byte* to, const Accumulator* values,
                                         std::size_t elements) noexcept {
#pragma omp simd
    for (std::size_t i = 0; i < elements; ++i) store<Memory>(to, i, values[i]);
  }

  /// Any number of operands in any forms, a block at a time. Every operand of a block is read
  /// before its result is written, so the result may take the place of any of them.
  [[gnu::always_inline]] static void blocked(std::byte* to, Form form, const Operand* operands,
                                             std::size_t operand_count, std::size_t begin,
                                             std::size_t elements, std::uint32_t divisor) noexcept {
    const auto is_carry = [](Form f) { return !alike && f == Form::carry; };
    const auto place = [&](Form f, std::size_t element) {
      return element * (is_carry(f) ? sizeof(Carry) : sizeof(Element));
    };
    alignas(64) std::array<Accumulator, block> values;
    for (std::size_t first = begin; first < begin + elements; first += block) {
      const std::size_t n = std::min(block, begin + elements - first);
      for (std::size_t k = 0; k < operand_count; ++k) {
        const std::byte* data = operands[k].data + place(operands[k].form, first);
        const bool carry = is_carry(operands[k].form);
        if (k == 0)
          carry ? start<Carry>(values.data(), data, n) : start<Element>(values.data(), data, n);
        else
          carry ? go_on<Carry>(values.data(), data, n) : go_on<Element>(values.data(), data, n);
      }
      if (divisor != 0)
        for (std::size_t i = 0; i < n; ++i) values[i] = divide(values[i], divisor);
      std::byte* target = to + place(form, first);
      is_carry(form) ? end<Carry>(target, values.data(), n)
                     : end<Element>(target, values.data(), n);
    }
  }

  /// Whether it was a copy, which needs no arithmetic.
  [[gnu::always_inline]] static bool copies(std::byte* to, Form form, const Operand* operands,
                                            std::size_t operand_count, std::size_t begin,
                                            std::size_t elements, std::uint32_t divisor) noexcept {
    if (operand_count != 1 || divisor != 0) return false;
    if (!alike && form != operands[0].form) return false;
    const std::size_t size = form == Form::carry ? sizeof(Carry) : sizeof(Element);
    const std::byte* const from = operands[0].data;
    if (to != from) std::memcpy(to + begin * size, from + begin * size, elements * size);
    return true;
  }

  [[gnu::always_inline]] static void run(std::byte* to, Form form, const Operand* operands,
                                         std::size_t operand_count, std::size_t begin,
                                         std::size_t elements, std::uint32_t divisor) noexcept {
    if constexpr (alike) {
      if (operand_count == 2) return direct<2>(to, operands, begin, elements, divisor);
      if (operand_count == 3) return direct<3>(to, operands, begin, elements, divisor);
      if (operand_count == 4) return direct<4>(to, operands, begin, elements, divisor);
    }
    blocked(to, form, operands, operand_count, begin, elements, divisor);
  }
};

#if defined(__x86_64__)
/// Rounding mode and treatment of subnormals belong to the caller; reductions use the default.
class DefaultControlWord {
 public:
  DefaultControlWord() noexcept : saved_(__builtin_ia32_stmxcsr()) {
    if (changed()) __builtin_ia32_ldmxcsr(standard);
  }
  ~DefaultControlWord() {
    if (changed()) __builtin_ia32_ldmxcsr(saved_);
  }
  DefaultControlWord(const DefaultControlWord&) = delete;
  DefaultControlWord& operator=(const DefaultControlWord&) = delete;

 private:
  static constexpr unsigned standard = 0x1f80;
  static constexpr unsigned flags = 0x3f;  // what has happened so far: nobody's setting
  bool changed() const noexcept { return (saved_ & ~flags) != standard; }
  unsigned saved_;
};
#else
class DefaultControlWord {
 public:
  DefaultControlWord() noexcept { std::fegetenv(&saved_), std::fesetenv(FE_DFL_ENV); }
  ~DefaultControlWord() { std::fesetenv(&saved_); }
  DefaultControlWord(const DefaultControlWord&) = delete;
  DefaultControlWord& operator=(const DefaultControlWord&) = delete;

 private:
  std::fenv_t saved_;
};
#endif

struct NoControlWord {};

/// Integers do not care.
template <class T>
using ControlWord = std::conditional_t<std::is_floating_point_v<typename T::Accumulator>,
                                       DefaultControlWord, NoControlWord>;

template <class T, class Operation>
void fold_baseline(std::byte* to, Form form, const Operand* operands, std::size_t operand_count,
                   std::size_t first, std::size_t elements, std::uint32_t divisor) noexcept {
  if (Loops<T, Operation>::copies(to, form, operands, operand_count, first, elements, divisor))
    return;
  [[maybe_unused]] const ControlWord<T> control;
  Loops<T, Operation>::run(to, form, operands, operand_count, first, elements, divisor);
}

#if defined(__x86_64__)
template <class T, class Operation>
[[gnu::target("avx2,bmi,bmi2,lzcnt,movbe")]] void fold_avx2(std::byte* to, Form form,
                                                            const Operand* operands,
                                                            std::size_t operand_count,
                                                            std::size_t first, std::size_t elements,
                                                            std::uint32_t divisor) noexcept {
  if (Loops<T, Operation>::copies(to, form, operands, operand_count, first, elements, divisor))
    return;
  [[maybe_unused]] const ControlWord<T> control;
  Loops<T, Operation>::run(to, form, operands, operand_count, first, elements, divisor);
}

template <class T, class Operation>
[[gnu::target("avx2,bmi,bmi2,lzcnt,movbe,avx512f,avx512bw,avx512dq,avx512vl")]] void fold_avx512(
    std::byte* to, Form form, const Operand* operands, std::size_t operand_count, std::size_t first,
    std::size_t elements, std::uint32_t divisor) noexcept {
  if (Loops<T, Operation>::copies(to, form, operands, operand_count, first, elements, divisor))
    return;
  [[maybe_unused]] const ControlWord<T> control;
  Loops<T, Operation>::run(to, form, operands, operand_count, first, elements, divisor);
}
#endif

std::size_t count_instruction_sets() noexcept {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi2")) return 1;
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

Fold find_fold(Dtype dtype, Reduction reduction, InstructionSet set) noexcept {
  return visit(dtype, reduction, [set]<class T, class Operation>(T, Operation) -> Fold {
#if defined(__x86_64__)
    if (set == InstructionSet::avx512) return fold_avx512<T, Operation>;
    if (set == InstructionSet::avx2) return fold_avx2<T, Operation>;
#endif
    (void)set;
    return fold_baseline<T, Operation>;
  });
}

}  // namespace khoro
