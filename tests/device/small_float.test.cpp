// SPDX-License-Identifier: Apache-2.0
// Floats of 8 and 16 bits, through the kernels that convert and fold them.
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "device/fold.h"
#include "support/catch.h"
#include "support/scalar.h"

using namespace khoro;
using test::ScalarReference;
using test::SmallFormat;

namespace {

using Codes = std::vector<unsigned>;
constexpr std::array small_types{Dtype::f16, Dtype::bf16, Dtype::f8e4m3, Dtype::f8e5m2};

/// As they lie in memory.
std::vector<std::byte> packed(Dtype dtype, const Codes& codes) {
  const std::size_t size = find(dtype)->bytes;
  std::vector<std::byte> data(codes.size() * size);
  for (std::size_t i = 0; i < codes.size(); ++i) std::memcpy(&data[i * size], &codes[i], size);
  return data;
}

Codes unpacked(Dtype dtype, const std::vector<std::byte>& data) {
  const std::size_t size = find(dtype)->bytes;
  Codes codes(data.size() / size);
  for (std::size_t i = 0; i < codes.size(); ++i) std::memcpy(&codes[i], &data[i * size], size);
  return codes;
}

Codes every_code(Dtype dtype) {
  Codes codes(std::size_t{1} << 8 * find(dtype)->bytes);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<unsigned>(i);
  return codes;
}

/// Partial results of an average are f32, so that alone converts from and to it.
std::vector<float> widened(Dtype dtype, const Codes& codes, InstructionSet set) {
  const std::vector<std::byte> data = packed(dtype, codes);
  const Operand operand{data.data(), Form::dtype};
  std::vector<float> to(codes.size());
  find_fold(dtype, Reduction::avg, set)(reinterpret_cast<std::byte*>(to.data()), Form::carry,
                                        &operand, 1, 0, to.size(), 0, {});
  return to;
}

Codes rounded(Dtype dtype, const std::vector<float>& values, InstructionSet set) {
  const Operand operand{reinterpret_cast<const std::byte*>(values.data()), Form::carry};
  std::vector<std::byte> to(values.size() * find(dtype)->bytes);
  find_fold(dtype, Reduction::avg, set)(to.data(), Form::dtype, &operand, 1, 0, values.size(), 0,
                                        {});
  return unpacked(dtype, to);
}

Codes folded(Dtype dtype, Reduction reduction, const Codes& a, const Codes& b, InstructionSet set,
             std::uint32_t divisor = 0) {
  const std::vector<std::byte> first = packed(dtype, a), second = packed(dtype, b);
  const std::array operands{Operand{first.data(), Form::dtype},
                            Operand{second.data(), Form::dtype}};
  std::vector<std::byte> to(first.size());
  find_fold(dtype, reduction, set)(to.data(), Form::dtype, operands.data(), 2, 0, a.size(), divisor,
                                   {});
  return unpacked(dtype, to);
}

bool is_nan(Dtype dtype, unsigned code) {
  return std::isnan(test::small_format(dtype)->value(code));
}

/// That rounding gives what the list of numbers says, on every instruction set.
void check_rounding(Dtype dtype, const std::vector<float>& values) {
  const SmallFormat& format = *test::small_format(dtype);
  Codes expected;
  for (float value : values) expected.push_back(format.code(static_cast<double>(value)));
  for (InstructionSet set : instruction_sets()) {
    const Codes got = rounded(dtype, values, set);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (got[i] == expected[i] || (is_nan(dtype, got[i]) && is_nan(dtype, expected[i]))) continue;
      INFO(find(dtype)->name << " of " << values[i] << " on " << name(set));
      REQUIRE(got[i] == expected[i]);
    }
  }
}

/// That every one of `a` with every one of `b` gives what the reference says.
void check_pairs(Dtype dtype, Reduction reduction, const Codes& ones, std::uint32_t divisor) {
  const ScalarReference reference({dtype, reduction});
  const auto scalar = [&](unsigned code) {
    return reference.at(reinterpret_cast<const std::byte*>(&code), Form::dtype);
  };
  Codes a, b;
  for (unsigned x : ones)
    for (unsigned y : ones) a.push_back(x), b.push_back(y);
  std::vector<test::Scalar> expected;
  for (std::size_t i = 0; i < a.size(); ++i)
    expected.push_back(
        reference.fold(Form::dtype, std::array{scalar(a[i]), scalar(b[i])}, divisor));
  for (InstructionSet set : instruction_sets()) {
    const Codes got = folded(dtype, reduction, a, b, set, divisor);
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (reference.equal(scalar(got[i]), expected[i])) continue;
      INFO(find(dtype)->name << " " << find(reduction)->name << " of " << a[i] << " and " << b[i]
                             << " is " << got[i] << " on " << name(set));
      REQUIRE(false);
    }
  }
}

void check_pairs(Dtype dtype, const Codes& ones) {
  for (const ReductionRow& row : reductions()) {
    if (!applies(row.reduction, dtype)) continue;
    check_pairs(dtype, row.reduction, ones, 0);
    if (row.reduction == Reduction::avg) check_pairs(dtype, row.reduction, ones, 3);
  }
}

}  // namespace

TEST_CASE("every float of 8 and 16 bits is widened to its number and comes back", "[device]") {
  for (Dtype dtype : small_types) {
    const SmallFormat& format = *test::small_format(dtype);
    const Codes codes = every_code(dtype);
    for (InstructionSet set : instruction_sets()) {
      const std::vector<float> values = widened(dtype, codes, set);
      const Codes back = rounded(dtype, values, set);
      for (std::size_t i = 0; i < codes.size(); ++i) {
        const double number = format.value(codes[i]);
        const bool nan = std::isnan(number);
        const bool saturates = std::isinf(number) && find(dtype)->bytes == 1;
        const bool widens = nan ? std::isnan(values[i])
                                : static_cast<double>(values[i]) == number &&
                                      std::signbit(values[i]) == std::signbit(number);
        const bool returns = nan ? is_nan(dtype, back[i]) : back[i] == codes[i] || saturates;
        if (widens && returns) continue;
        INFO(find(dtype)->name << " " << codes[i] << " on " << name(set));
        CHECK(widens);
        REQUIRE(returns);
      }
    }
  }
}

TEST_CASE("rounding goes to the nearest number, and to the even one from halfway", "[device]") {
  for (Dtype dtype : small_types) {
    const SmallFormat& format = *test::small_format(dtype);
    std::vector<double> bounds = format.finite();
    bounds.push_back(format.next());
    std::vector<float> values;
    for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
      const auto halfway = static_cast<float>((bounds[i] + bounds[i + 1]) / 2);
      for (float value : {std::nextafter(halfway, 0.0f), halfway, std::nextafter(halfway, INFINITY),
                          std::nextafter(static_cast<float>(bounds[i]), 0.0f)})
        values.push_back(value), values.push_back(-value);
    }
    check_rounding(dtype, values);
  }
}

TEST_CASE("rounding of any float is that to the nearest number", "[device]") {
  std::mt19937_64 random(6);
  std::vector<float> values{0.0f, -0.0f, INFINITY, -INFINITY, NAN, -NAN};
  for (float extreme : {std::numeric_limits<float>::max(), std::numeric_limits<float>::min(),
                        std::numeric_limits<float>::denorm_min()})
    values.push_back(extreme), values.push_back(-extreme);
  while (values.size() < 100'000) {
    const auto bits = static_cast<std::uint32_t>(random());
    // Half of them in the range of the smaller formats.
    const std::uint32_t near = (bits & 0x87ffffff) | 0x38000000;
    for (std::uint32_t each : {bits, near}) {
      float value = 0;
      std::memcpy(&value, &each, sizeof value);
      values.push_back(value);
    }
  }
  for (Dtype dtype : small_types) check_rounding(dtype, values);
}

TEST_CASE("all pairs of 8-bit floats give the bits of the scalar reference", "[device]") {
  for (Dtype dtype : {Dtype::f8e4m3, Dtype::f8e5m2}) check_pairs(dtype, every_code(dtype));
}

TEST_CASE("specials of 16-bit floats against each other give the bits of the scalar reference",
          "[device]") {
  check_pairs(Dtype::bf16, {0x0000, 0x8000, 0x0001, 0x8001, 0x007f, 0x0080, 0x8080, 0x3f80,
                            0xbf80, 0x3f81, 0x3eff, 0x7f7f, 0xff7f, 0x7f00, 0x7f80, 0xff80,
                            0x7f81, 0x7fc0, 0xffc0, 0x7fff, 0x4049, 0x4000, 0x1fff, 0x2000});
  check_pairs(Dtype::f16, {0x0000, 0x8000, 0x0001, 0x8001, 0x03ff, 0x83ff, 0x0400, 0x8400, 0x3c00,
                           0xbc00, 0x3c01, 0x3bff, 0x7bff, 0xfbff, 0x7800, 0x7c00, 0xfc00, 0x7c01,
                           0x7e00, 0xfe00, 0x7fff, 0x4248, 0x4000, 0x0fff, 0x1000, 0x1bff});
}

TEST_CASE("what is too large for an 8-bit float becomes its largest number, an infinity too",
          "[device]") {
  for (InstructionSet set : instruction_sets()) {
    INFO(name(set));
    // 448 + 448 and -448 - 32; 57344 + 57344.
    CHECK(folded(Dtype::f8e4m3, Reduction::sum, {0x7e, 0xfe}, {0x7e, 0xe0}, set) ==
          Codes{0x7e, 0xfe});
    CHECK(folded(Dtype::f8e5m2, Reduction::sum, {0x7b}, {0x7b}, set) == Codes{0x7b});
    // Infinities of either sign with 1, and with each other: that has no value.
    CHECK(folded(Dtype::f8e5m2, Reduction::sum, {0x7c, 0xfc}, {0x3c, 0x3c}, set) ==
          Codes{0x7b, 0xfb});
    CHECK(folded(Dtype::f8e5m2, Reduction::max, {0x7c}, {0x3c}, set) == Codes{0x7b});
    CHECK(is_nan(Dtype::f8e5m2, folded(Dtype::f8e5m2, Reduction::sum, {0x7c}, {0xfc}, set)[0]));
    for (const auto reduction : {Reduction::sum, Reduction::prod, Reduction::min, Reduction::max}) {
      CHECK(is_nan(Dtype::f8e4m3, folded(Dtype::f8e4m3, reduction, {0x7f}, {0x38}, set)[0]));
      CHECK(is_nan(Dtype::f8e5m2, folded(Dtype::f8e5m2, reduction, {0x38}, {0x7d}, set)[0]));
    }
    // The larger formats have their infinity: 60000 + 60000.
    CHECK(folded(Dtype::f16, Reduction::sum, {0x7b53}, {0x7b53}, set) == Codes{0x7c00});
    CHECK(folded(Dtype::f16, Reduction::avg, {0x7b53}, {0x7b53}, set, 2) == Codes{0x7b53});
  }
}
