// SPDX-License-Identifier: Apache-2.0
#pragma once

// The arithmetic of a team: what device/fold.h promises, by the same operations on the same types,
// shared out so that neighbouring threads take neighbouring vectors of 16 bytes.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "device/arithmetic.h"
#include "device/fold.h"
#include "executor/lane_state.h"

namespace khoro::gpu {

inline constexpr std::size_t vector_bytes = 16;

KHORO_HD inline bool is_written(const Sink& sink) noexcept {
  return sink.kind != Sink::Kind::reference;
}

template <class Value>
KHORO_HD inline bool is_aligned(const std::byte* data, Value bytes) noexcept {
  return reinterpret_cast<std::uintptr_t>(data) % bytes == 0;
}

/// One element at any address.
template <class Memory>
KHORO_HD inline Memory load_one(const std::byte* data) noexcept {
  Memory value;
  if (is_aligned(data, sizeof(Memory)))
    std::memcpy(&value, __builtin_assume_aligned(data, sizeof(Memory)), sizeof(Memory));
  else
    std::memcpy(&value, data, sizeof(Memory));
  return value;
}
template <class Memory>
KHORO_HD inline void store_one(std::byte* data, const Memory& value) noexcept {
  if (is_aligned(data, sizeof(Memory)))
    std::memcpy(__builtin_assume_aligned(data, sizeof(Memory)), &value, sizeof(Memory));
  else
    std::memcpy(data, &value, sizeof(Memory));
}

/// `count` elements at a multiple of 16 bytes, which are whole vectors.
template <class Memory, unsigned count>
KHORO_HD inline void load_vectors(Memory (&values)[count], const std::byte* data) noexcept {
  static_assert(sizeof values % vector_bytes == 0);
  std::memcpy(values, __builtin_assume_aligned(data, vector_bytes), sizeof values);
}
template <class Memory, unsigned count>
KHORO_HD inline void store_vectors(std::byte* data, const Memory (&values)[count]) noexcept {
  static_assert(sizeof values % vector_bytes == 0);
  std::memcpy(__builtin_assume_aligned(data, vector_bytes), values, sizeof values);
}

/// Elements before the first from which on each operand and sink is of whole vectors at multiples
/// of 16 bytes; all, if there is none.
KHORO_NOINLINE KHORO_HD inline std::uint64_t elements_before_vectors(
    const FoldRequest& request, std::uint32_t element_bytes, std::uint32_t carry_bytes) noexcept {
  const auto lies_well = [&](const std::byte* data, Form form, std::uint64_t head) {
    return is_aligned(data + head * (form == Form::carry ? carry_bytes : element_bytes),
                      vector_bytes);
  };
  std::uint64_t head = 0;
  KHORO_ROLLED
  for (std::uint32_t k = 0; k < request.sink_count; ++k) {
    const Sink& sink = request.sinks[k];
    if (!is_written(sink) || sink.run.form == Form::carry) continue;
    const auto beyond = reinterpret_cast<std::uintptr_t>(sink.run.data) % vector_bytes;
    head = (vector_bytes - beyond) % vector_bytes / element_bytes;
  }
  bool fits = head <= request.elements;
  KHORO_ROLLED
  for (std::uint32_t k = 0; k < request.operand_count; ++k)
    fits = fits && lies_well(request.operands[k].data, request.operands[k].form, head);
  KHORO_ROLLED
  for (std::uint32_t k = 0; k < request.sink_count; ++k) {
    const Sink& sink = request.sinks[k];
    fits = fits && (!is_written(sink) || lies_well(sink.run.data, sink.run.form, head));
  }
  return fits ? head : request.elements;
}

/// The loops of one (types, operation) for a team.
template <class T, class Operation>
class Folding {
 public:
  using Element = typename T::Element;
  using Carry = typename T::Carry;
  using Accumulator = typename T::Accumulator;

  /// `own_factor`: an element, of Reduction::premul.
  KHORO_HD Folding(const FoldRequest& request, const std::byte* own_factor) noexcept
      : request_(request), factor_(own_factor) {}

  /// All members call it.
  template <class Team>
  KHORO_HD void run(const Team& team) const noexcept {
    const std::uint64_t head =
        elements_before_vectors(request_, sizeof(Element), alike ? sizeof(Element) : sizeof(Carry));
    const std::uint64_t vectors = (request_.elements - head) / width;
    const std::uint64_t tail = head + vectors * width;
    KHORO_ROLLED
    for (std::uint64_t v = team.rank(); v < vectors; v += std::uint64_t{team.size()} * at_once)
      vectors_from(head, v, vectors, team.size());
    const std::uint64_t others = request_.elements - vectors * width;
    KHORO_ROLLED
    for (std::uint64_t k = team.rank(); k < others; k += team.size())
      one(k < head ? k : tail + (k - head));
  }

 private:
  static constexpr bool alike = std::is_same_v<Element, Carry>;
  static constexpr bool may_scale = std::is_same_v<Operation, ScaledSum>;
  static constexpr bool may_divide = std::is_same_v<Operation, Average>;
  /// Elements of a vector.
  static constexpr unsigned width = vector_bytes / sizeof(Element);
  /// Vectors that a member has under way at once: as many as registers allow where it is asked for
  /// most, elsewhere it is too much code.
  static constexpr bool often = std::is_base_of_v<Sum, Operation> && !may_scale;
  static constexpr unsigned at_once = often && width * sizeof(Accumulator) <= 32 ? 4 : 1;

  KHORO_HD static bool is_carry(Form form) noexcept { return !alike && form == Form::carry; }
  KHORO_HD static std::uint64_t place(Form form, std::uint64_t element) noexcept {
    return element * (is_carry(form) ? sizeof(Carry) : sizeof(Element));
  }

  KHORO_HD Accumulator factor() const noexcept {
    return convert<Accumulator>(load_one<Element>(factor_));
  }

  KHORO_HD void one(std::uint64_t i) const noexcept {
    Accumulator value{};
    KHORO_ROLLED
    for (std::uint32_t k = 0; k < request_.operand_count; ++k) {
      const Operand& operand = request_.operands[k];
      const std::byte* const data = operand.data + place(operand.form, i);
      Accumulator next = is_carry(operand.form) ? convert<Accumulator>(load_one<Carry>(data))
                                                : convert<Accumulator>(load_one<Element>(data));
      if constexpr (may_scale)
        if (operand.premul) next = Product::apply(next, factor());
      value = k == 0 ? next : Operation::apply(value, next);
    }
    if constexpr (may_divide)
      if (request_.divisor != 0) value = divide(value, request_.divisor);
    KHORO_ROLLED
    for (std::uint32_t k = 0; k < request_.sink_count; ++k) {
      const Sink& sink = request_.sinks[k];
      if (!is_written(sink)) continue;
      std::byte* const data = sink.run.data + place(sink.run.form, i);
      is_carry(sink.run.form) ? store_one(data, convert<Carry>(value))
                              : store_one(data, convert<Element>(value));
    }
  }

  /// What a member takes in one go: vectors `stride` apart.
  KHORO_HD void vectors_from(std::uint64_t head, std::uint64_t first, std::uint64_t vectors,
                             std::uint64_t stride) const noexcept {
    Accumulator values[at_once][width] = {};
    const auto element = [&](unsigned u) { return head + (first + u * stride) * width; };
    const auto is_there = [&](unsigned u) { return first + u * stride < vectors; };
    KHORO_ROLLED
    for (std::uint32_t k = 0; k < request_.operand_count; ++k) {
      const Operand& operand = request_.operands[k];
      for (unsigned u = 0; u < at_once; ++u) {
        if (!is_there(u)) continue;
        const std::byte* const data = operand.data + place(operand.form, element(u));
        if (is_carry(operand.form))
          take<Carry>(values[u], data, operand.premul, k == 0);
        else
          take<Element>(values[u], data, operand.premul, k == 0);
      }
    }
    for (unsigned u = 0; u < at_once; ++u) {
      if (!is_there(u)) continue;
      if constexpr (may_divide)
        if (request_.divisor != 0)
          for (Accumulator& value : values[u]) value = divide(value, request_.divisor);
      KHORO_ROLLED
      for (std::uint32_t k = 0; k < request_.sink_count; ++k) {
        const Sink& sink = request_.sinks[k];
        if (!is_written(sink)) continue;
        std::byte* const data = sink.run.data + place(sink.run.form, element(u));
        is_carry(sink.run.form) ? give<Carry>(data, values[u]) : give<Element>(data, values[u]);
      }
    }
  }

  template <class Memory>
  KHORO_HD void take(Accumulator (&values)[width], const std::byte* data, bool premul,
                     bool first) const noexcept {
    Memory memory[width];
    load_vectors(memory, data);
    for (unsigned i = 0; i < width; ++i) {
      Accumulator next = convert<Accumulator>(memory[i]);
      if constexpr (may_scale)
        if (premul) next = Product::apply(next, factor());
      values[i] = first ? next : Operation::apply(values[i], next);
    }
  }
  template <class Memory>
  KHORO_HD static void give(std::byte* data, const Accumulator (&values)[width]) noexcept {
    Memory memory[width];
    for (unsigned i = 0; i < width; ++i) memory[i] = convert<Memory>(values[i]);
    store_vectors(data, memory);
  }

  const FoldRequest& request_;
  const std::byte* factor_;
};

/// Operations that give the same bits for signed integers as for unsigned ones.
template <class Operation>
inline constexpr bool ignores_sign =
    !std::is_same_v<Operation, Min> && !std::is_same_v<Operation, Max> &&
    !std::is_same_v<Operation, Average>;

/// Not inlined: a kernel has many of these, and one frame for all.
template <class T, class Operation, class Team>
KHORO_NOINLINE KHORO_HD void fold_as(const Team& team, const FoldRequest& request,
                                     const std::byte* factor) noexcept {
  Folding<T, Operation>(request, factor).run(team);
}

/// `elements` are bytes here, which are copied.
template <class Team>
KHORO_NOINLINE KHORO_HD void copy_bytes(const Team& team, const FoldRequest& request) noexcept {
  Folding<Types<std::uint8_t>, Sum>(request, nullptr).run(team);
}

/// Whether one operand goes to every sink as it is.
KHORO_HD inline bool only_copies(const FoldRequest& request) noexcept {
  if (request.operand_count != 1 || request.divisor != 0 || request.operands[0].premul)
    return false;
  for (std::uint32_t k = 0; k < request.sink_count; ++k)
    if (is_written(request.sinks[k]) && request.sinks[k].run.form != request.operands[0].form)
      return false;
  return true;
}

}  // namespace khoro::gpu
