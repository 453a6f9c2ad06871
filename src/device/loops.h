// SPDX-License-Identifier: Apache-2.0
#pragma once

// The loops of the kernels. Each set of instructions has a file that makes kernels of them, by one
// entry point a (dtype, reduction), into which everything here is inlined.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/own_reduction.h"
#include "device/arithmetic.h"
#include "device/control_word.h"
#include "device/division.h"
#include "device/fold.h"

namespace khoro {

/// Elements of one pass through the accumulator: it stays in the first-level cache.
inline constexpr std::size_t fold_block = 1024;

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

/// What a set of instructions knows of conversions: none.
struct NoConversions {
  template <class Memory>
  static constexpr bool widens = false;
  template <class Memory>
  static constexpr bool rounds = false;
};

/// The loops of one (types, operation). All are inlined into the entry points below, which differ
/// only in the instructions they may use.
template <class T, class Operation, class Conversions>
struct Loops {
  using Element = typename T::Element;
  using Carry = typename T::Carry;
  using Accumulator = typename T::Accumulator;
  /// Whether elements and partial results are the same in memory.
  static constexpr bool alike = std::is_same_v<Element, Carry>;
  static constexpr bool may_divide = std::is_same_v<Operation, Average>;
  static constexpr bool may_scale = std::is_same_v<Operation, ScaledSum>;
  /// Whether two operands take one pass: a conversion costs more than the accumulator.
  static constexpr bool one_pass = std::is_same_v<Element, Accumulator> && !may_scale;
  /// And more operands: where it is asked for most, else it is too much code.
  static constexpr bool long_pass = one_pass && std::is_base_of_v<Sum, Operation>;

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
    if constexpr (may_divide)
      if (divisor != 0) return direct<true>(to, operands, begin, elements, divisor, rest);
    direct<false>(to, operands, begin, elements, divisor, rest);
  }

  template <class Memory>
  [[gnu::always_inline]] static void start(Accumulator* values, const std::byte* data,
                                           std::size_t elements) noexcept {
    if constexpr (Conversions::template widens<Memory>)
      return Conversions::template widen_all<Memory>(values, data, elements);
#pragma omp simd
    for (std::size_t i = 0; i < elements; ++i) values[i] = load<Memory, Accumulator>(data, i);
  }
  template <class Memory>
  [[gnu::always_inline]] static void go_on(Accumulator* values, const std::byte* data,
                                           std::size_t elements) noexcept {
    if constexpr (Conversions::template widens<Memory>) {
      alignas(64) std::array<Accumulator, fold_block> next;
      Conversions::template widen_all<Memory>(next.data(), data, elements);
#pragma omp simd
      for (std::size_t i = 0; i < elements; ++i) values[i] = Operation::apply(values[i], next[i]);
    } else {
#pragma omp simd
      for (std::size_t i = 0; i < elements; ++i)
        values[i] = Operation::apply(values[i], load<Memory, Accumulator>(data, i));
    }
  }
  template <class Memory>
  [[gnu::always_inline]] static void end(std::byte* to, const Accumulator* values,
                                         std::size_t elements) noexcept {
    if constexpr (Conversions::template rounds<Memory>)
      return Conversions::template round_all<Memory>(to, values, elements);
#pragma omp simd
    for (std::size_t i = 0; i < elements; ++i) store<Memory>(to, i, values[i]);
  }

  /// An operand times the rank's factor.
  [[gnu::always_inline]] static void scaled(Accumulator* values, const std::byte* data, bool carry,
                                            bool first, std::size_t elements,
                                            Accumulator factor) noexcept {
    alignas(64) std::array<Accumulator, fold_block> next;
    Accumulator* const own = first ? values : next.data();
    carry ? start<Carry>(own, data, elements) : start<Element>(own, data, elements);
#pragma omp simd
    for (std::size_t i = 0; i < elements; ++i) own[i] = Product::apply(own[i], factor);
    if (first) return;
#pragma omp simd
    for (std::size_t i = 0; i < elements; ++i) values[i] = Operation::apply(values[i], next[i]);
  }

  /// Any number of operands in any forms, a block at a time. Every operand of a block is read
  /// before its result is written, so the result may take the place of any of them.
  [[gnu::always_inline]] static void blocked(std::byte* to, Form form, const Operand* operands,
                                             std::size_t operand_count, std::size_t begin,
                                             std::size_t elements, std::uint32_t divisor,
                                             [[maybe_unused]] const OwnFold& own) noexcept {
    const auto is_carry = [](Form f) { return !alike && f == Form::carry; };
    const auto place = [&](Form f, std::size_t element) {
      return element * (is_carry(f) ? sizeof(Carry) : sizeof(Element));
    };
    alignas(64) std::array<Accumulator, fold_block> values;
    for (std::size_t first = begin; first < begin + elements; first += fold_block) {
      const std::size_t n = std::min(fold_block, begin + elements - first);
      for (std::size_t k = 0; k < operand_count; ++k) {
        const std::byte* data = operands[k].data + place(operands[k].form, first);
        const bool carry = is_carry(operands[k].form);
        if constexpr (may_scale)
          if (operands[k].premul) {
            const auto* const factor = own.reduction->factor.data();
            scaled(values.data(), data, carry, k == 0, n, load<Element, Accumulator>(factor, 0));
            continue;
          }
        if (k == 0)
          carry ? start<Carry>(values.data(), data, n) : start<Element>(values.data(), data, n);
        else
          carry ? go_on<Carry>(values.data(), data, n) : go_on<Element>(values.data(), data, n);
      }
      if constexpr (may_divide)
        if (divisor != 0) divide_all(values.data(), n, divisor);
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
    if (may_scale && operands[0].premul) return false;
    if (!alike && form != operands[0].form) return false;
    const std::size_t size = form == Form::carry ? sizeof(Carry) : sizeof(Element);
    const std::byte* const from = operands[0].data;
    if (to != from) std::memcpy(to + begin * size, from + begin * size, elements * size);
    return true;
  }

  [[gnu::always_inline]] static void run(std::byte* to, Form form, const Operand* operands,
                                         std::size_t operand_count, std::size_t begin,
                                         std::size_t elements, std::uint32_t divisor,
                                         const OwnFold& own) noexcept {
    if constexpr (one_pass)
      if (operand_count == 2) return direct<2>(to, operands, begin, elements, divisor);
    if constexpr (long_pass) {
      if (operand_count == 3) return direct<3>(to, operands, begin, elements, divisor);
      if (operand_count == 4) return direct<4>(to, operands, begin, elements, divisor);
    }
    blocked(to, form, operands, operand_count, begin, elements, divisor, own);
  }
};

struct NoControlWord {};

/// Integers do not care, unless they are divided.
template <class T, class Operation>
using ControlWord = std::conditional_t<std::is_floating_point_v<typename T::Accumulator> ||
                                           std::is_same_v<Operation, Average>,
                                       DefaultControlWord, NoControlWord>;

/// A kernel, from within its entry point.
template <class T, class Operation, class Conversions>
[[gnu::always_inline]] inline void run_loops(std::byte* to, Form form, const Operand* operands,
                                             std::size_t operand_count, std::size_t first,
                                             std::size_t elements, std::uint32_t divisor,
                                             const OwnFold& own) noexcept {
  using Kernel = Loops<T, Operation, Conversions>;
  if (Kernel::copies(to, form, operands, operand_count, first, elements, divisor)) return;
  [[maybe_unused]] const ControlWord<T, Operation> control;
  Kernel::run(to, form, operands, operand_count, first, elements, divisor, own);
}

// One for each set of instructions.
Fold find_fold_baseline(Dtype dtype, Reduction reduction, Partials partials) noexcept;
#if defined(__x86_64__)
Fold find_fold_avx2(Dtype dtype, Reduction reduction, Partials partials) noexcept;
Fold find_fold_avx512(Dtype dtype, Reduction reduction, Partials partials) noexcept;
#endif

}  // namespace khoro
