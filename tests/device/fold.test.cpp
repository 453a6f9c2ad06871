// SPDX-License-Identifier: Apache-2.0
#include "device/fold.h"

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "support/catch.h"
#include "support/scalar.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

using namespace khoro;
using test::Scalar;
using test::ScalarReference;

namespace {

constexpr std::size_t guard = 64;
constexpr auto guard_byte = std::byte{0xa5};

/// Elements at a chosen alignment, with guard bytes on both sides.
class Memory {
 public:
  Memory(std::size_t bytes, std::size_t misalignment)
      : bytes_(bytes), storage_(bytes + 4 * guard, guard_byte) {
    const auto address = reinterpret_cast<std::uintptr_t>(storage_.data());
    offset_ = guard + (guard - address % guard) % guard + misalignment;
  }
  std::byte* data() { return storage_.data() + offset_; }
  bool guards_intact() const {
    for (std::size_t i = 0; i < storage_.size(); ++i)
      if ((i < offset_ || i >= offset_ + bytes_) && storage_[i] != guard_byte) return false;
    return true;
  }

 private:
  std::size_t bytes_;
  std::size_t offset_ = 0;
  std::vector<std::byte> storage_;
};

struct Case {
  Dtype dtype = Dtype::f32;
  Reduction reduction = Reduction::sum;
  Partials partials = Partials::dtype;
  std::vector<Form> operands;
  Form to = Form::dtype;
  std::uint32_t divisor = 0;
  std::size_t elements = 0;
  std::size_t misalignment = 0;
  int in_place = -1;  // the operand whose memory the result takes
};

std::string text(const Case& c) {
  std::string result = std::string(find(c.dtype)->name) + " " +
                       std::string(find(c.reduction)->name) + " of " +
                       std::to_string(c.operands.size()) + ", elements " +
                       std::to_string(c.elements) + ", misaligned by " +
                       std::to_string(c.misalignment) + ", in place " + std::to_string(c.in_place);
  if (c.partials == Partials::f32) result += ", partial results in f32";
  return result + ", divisor " + std::to_string(c.divisor);
}

/// Any bits: numbers of all sizes, subnormals, infinities and NaNs. Half of them are of near sizes,
/// where sums cancel and round, and some more are subnormal.
std::vector<std::byte> draw(std::size_t elements, std::size_t size, Dtype dtype,
                            std::mt19937_64& random) {
  std::vector<std::byte> data(elements * size);
  for (std::byte& byte : data) byte = static_cast<std::byte>(random());
  if (find(dtype)->integer || size == 1) return data;
  for (std::size_t i = size - 1; i < data.size(); i += size) {
    const std::uint64_t kind = random();
    const bool subnormal = kind % 16 == 2;
    if (kind % 2 != 0 || subnormal)
      data[i] = static_cast<std::byte>((subnormal ? 0 : 0x3f) | (kind & 0x20 ? 0x80 : 0));
    if (subnormal && size > 2) data[i - 1] &= std::byte{0x0f};
  }
  return data;
}

std::vector<Scalar> expected_of(const Case& c, const ScalarReference& reference,
                                const std::vector<std::vector<std::byte>>& data) {
  std::vector<Scalar> expected;
  std::vector<Scalar> operands(data.size());
  for (std::size_t i = 0; i < c.elements; ++i) {
    for (std::size_t k = 0; k < data.size(); ++k)
      operands[k] =
          reference.at(data[k].data() + i * reference.bytes(c.operands[k]), c.operands[k]);
    expected.push_back(reference.fold(c.to, operands, c.divisor));
  }
  return expected;
}

/// Runs the case on one instruction set and compares each element with what is expected.
void check(const Case& c, const ScalarReference& reference,
           const std::vector<std::vector<std::byte>>& data, const std::vector<Scalar>& expected,
           InstructionSet set) {
  std::vector<Memory> memory;
  std::vector<Operand> operands;
  memory.reserve(data.size());
  for (std::size_t k = 0; k < data.size(); ++k) {
    Memory& own = memory.emplace_back(data[k].size(), (c.misalignment + 5 * k) % 64);
    std::copy(data[k].begin(), data[k].end(), own.data());
    operands.push_back({own.data(), c.operands[k]});
  }
  Memory own(c.elements * reference.bytes(c.to), c.misalignment);
  Memory& to = c.in_place < 0 ? own : memory[static_cast<std::size_t>(c.in_place)];
  // At odd alignments in two parts, the second of which begins anywhere.
  const std::size_t part = c.misalignment % 2 == 0 ? c.elements : c.elements / 3;
  const Fold fold = find_fold(c.dtype, c.reduction, set, c.partials);
  fold(to.data(), c.to, operands.data(), operands.size(), 0, part, c.divisor, {});
  fold(to.data(), c.to, operands.data(), operands.size(), part, c.elements - part, c.divisor, {});
  bool equal = true;
  for (std::size_t i = 0; i < c.elements && equal; ++i)
    equal = reference.equal(reference.at(to.data() + i * reference.bytes(c.to), c.to), expected[i]);
  if (equal && to.guards_intact()) return;
  INFO(text(c) << " on " << name(set));
  CHECK(equal);
  REQUIRE(to.guards_intact());
}

/// On every instruction set.
void check(const Case& c, std::mt19937_64& random) {
  const ScalarReference reference({c.dtype, c.reduction, c.partials});
  std::vector<std::vector<std::byte>> data;
  for (Form form : c.operands)
    data.push_back(draw(c.elements, reference.bytes(form), c.dtype, random));
  const std::vector<Scalar> expected = expected_of(c, reference, data);
  for (InstructionSet set : instruction_sets()) check(c, reference, data, expected, set);
}

template <class F>
void for_each_kernel(F&& f) {
  for (const DtypeRow& dtype : dtypes())
    for (const ReductionRow& reduction : reductions())
      for (Partials partials : {Partials::dtype, Partials::f32}) {
        if (!applies(reduction.reduction, dtype.dtype)) continue;
        // Where they make no difference one of them will do.
        if (partials == Partials::f32 && carry_type(dtype.dtype, reduction.reduction, partials) ==
                                             carry_type(dtype.dtype, reduction.reduction))
          continue;
        f(dtype.dtype, reduction.reduction, partials);
      }
}

Case make_case(Dtype dtype, Reduction reduction, Partials partials, std::size_t operands) {
  Case c;
  c.dtype = dtype;
  c.reduction = reduction;
  c.partials = partials;
  c.operands.assign(operands, Form::dtype);
  return c;
}

}  // namespace

TEST_CASE("two operands give the bits of the scalar reference at every alignment and count",
          "[device]") {
  std::mt19937_64 random(1);
  for_each_kernel([&](Dtype dtype, Reduction reduction, Partials partials) {
    Case c = make_case(dtype, reduction, partials, 2);
    for (c.misalignment = 0; c.misalignment < 64; ++c.misalignment)
      for (c.elements = c.misalignment % 3; c.elements <= 130; c.elements += 3) check(c, random);
    c.misalignment = 0;
    for (c.elements = 0; c.elements <= 130; ++c.elements) check(c, random);
  });
}

TEST_CASE("any number of operands is folded from the left and rounded once", "[device]") {
  std::mt19937_64 random(2);
  for_each_kernel([&](Dtype dtype, Reduction reduction, Partials partials) {
    for (std::size_t operands : {1, 2, 3, 4, 5, 9}) {
      Case c = make_case(dtype, reduction, partials, operands);
      for (std::size_t elements : {1, 7, 64, 1024, 1025, 2100})
        for (std::uint32_t divisor : {0, 3, 64, 65537}) {
          if (divisor != 0 && reduction != Reduction::avg) continue;
          c.elements = elements;
          c.divisor = divisor;
          c.misalignment = elements % 5;
          check(c, random);
        }
    }
  });
}

TEST_CASE("elements and partial results may be mixed in one fold", "[device]") {
  std::mt19937_64 random(3);
  for_each_kernel([&](Dtype dtype, Reduction reduction, Partials partials) {
    if (carry_form(dtype, reduction, partials) == Form::dtype) return;
    for (unsigned forms = 0; forms < 16; ++forms) {
      Case c = make_case(dtype, reduction, partials, 3);
      for (unsigned k = 0; k < 3; ++k)
        if (forms >> k & 1) c.operands[k] = Form::carry;
      c.to = forms >> 3 & 1 ? Form::carry : Form::dtype;
      for (std::size_t elements : {1, 5, 1024, 1500}) {
        c.elements = elements;
        for (std::uint32_t divisor : {0, 7}) {
          if (divisor != 0 && reduction != Reduction::avg) continue;
          c.divisor = divisor;
          check(c, random);
        }
      }
      c.operands.resize(1);
      check(c, random);
    }
  });
}

TEST_CASE("the result may take the place of any operand", "[device]") {
  std::mt19937_64 random(4);
  for_each_kernel([&](Dtype dtype, Reduction reduction, Partials partials) {
    for (std::size_t operands = 1; operands <= 5; ++operands) {
      Case c = make_case(dtype, reduction, partials, operands);
      for (c.in_place = 0; c.in_place < static_cast<int>(operands); ++c.in_place)
        for (std::size_t elements : {3, 129, 1100}) {
          c.elements = elements;
          c.divisor = reduction == Reduction::avg ? 5 : 0;
          check(c, random);
        }
    }
  });
}

TEST_CASE("minus zero is less than plus zero and a NaN wins on either side", "[device]") {
  const std::array<float, 4> a{-0.0f, 0.0f, NAN, 1.0f};
  const std::array<float, 4> b{0.0f, -0.0f, 1.0f, NAN};
  std::array<float, 4> to{};
  const std::array operands{Operand{reinterpret_cast<const std::byte*>(a.data()), Form::dtype},
                            Operand{reinterpret_cast<const std::byte*>(b.data()), Form::dtype}};
  const auto run = [&](Reduction reduction) {
    find_fold(Dtype::f32, reduction)(reinterpret_cast<std::byte*>(to.data()), Form::dtype,
                                     operands.data(), 2, 0, 4, 0, {});
  };
  run(Reduction::min);
  CHECK((std::signbit(to[0]) && std::signbit(to[1])));
  CHECK((std::isnan(to[2]) && std::isnan(to[3])));
  run(Reduction::max);
  CHECK((!std::signbit(to[0]) && !std::signbit(to[1])));
  CHECK((std::isnan(to[2]) && std::isnan(to[3])));
}

TEST_CASE("the caller's rounding mode neither changes a result nor is changed", "[device]") {
  const std::array<float, 2> a{1.0f, 0x1p-140f};
  const std::array<float, 2> b{1e-9f, 0x1p-140f};
  std::array<float, 2> to{};
  const std::array operands{Operand{reinterpret_cast<const std::byte*>(a.data()), Form::dtype},
                            Operand{reinterpret_cast<const std::byte*>(b.data()), Form::dtype}};
  REQUIRE(std::fesetround(FE_UPWARD) == 0);
#if defined(__x86_64__)
  const unsigned before = _mm_getcsr() | 0x8040;  // subnormals are flushed to zero
  _mm_setcsr(before);
#endif
  for (InstructionSet set : instruction_sets())
    find_fold(Dtype::f32, Reduction::sum, set)(reinterpret_cast<std::byte*>(to.data()), Form::dtype,
                                               operands.data(), 2, 0, 2, 0, {});
  const int mode = std::fegetround();
#if defined(__x86_64__)
  const unsigned after = _mm_getcsr();
  _mm_setcsr(0x1f80);
  CHECK((after & ~0x3fu) == (before & ~0x3fu));
#endif
  std::fesetround(FE_TONEAREST);
  CHECK(mode == FE_UPWARD);
  CHECK(to[0] == 1.0f);
  CHECK(to[1] == 0x1p-139f);
}
