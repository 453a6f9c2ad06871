// SPDX-License-Identifier: Apache-2.0
// Kernels of reductions that a caller has made.
#include <array>
#include <random>
#include <vector>

#include "base/own_reduction.h"
#include "device/fold.h"
#include "support/catch.h"
#include "support/scalar.h"

using namespace khoro;
using test::Scalar;
using test::ScalarReference;

namespace {

std::vector<std::byte> draw(std::size_t bytes, std::mt19937_64& random) {
  std::vector<std::byte> data(bytes);
  for (std::byte& byte : data) byte = static_cast<std::byte>(random());
  return data;
}

struct Case {
  std::vector<Form> forms;
  unsigned scaled = 0;  // of operand k: bit k
  Form to = Form::dtype;
  std::size_t elements = 0;
};

void check(Dtype dtype, Partials partials, const Case& c, std::mt19937_64& random) {
  const ScalarReference reference({dtype, Reduction::premul, partials});
  OwnReduction own;
  own.dtype = dtype;
  for (std::byte& byte : own.factor) byte = static_cast<std::byte>(random());
  const Scalar factor = reference.at(own.factor.data(), Form::dtype);
  std::vector<std::vector<std::byte>> data;
  std::vector<Operand> operands;
  std::vector<const Scalar*> factors;
  for (std::size_t k = 0; k < c.forms.size(); ++k) {
    data.push_back(draw(c.elements * reference.bytes(c.forms[k]), random));
    const bool premul = (c.scaled >> k & 1) != 0;
    operands.push_back({data.back().data(), c.forms[k], premul});
    factors.push_back(premul ? &factor : nullptr);
  }
  for (InstructionSet set : instruction_sets()) {
    std::vector<std::byte> to(c.elements * reference.bytes(c.to));
    find_fold(dtype, Reduction::premul, set, partials)(
        to.data(), c.to, operands.data(), operands.size(), 0, c.elements, 0, {dtype, &own});
    bool equal = true;
    for (std::size_t i = 0; i < c.elements; ++i) {
      std::vector<Scalar> row;
      for (std::size_t k = 0; k < data.size(); ++k)
        row.push_back(reference.at(data[k].data() + i * reference.bytes(c.forms[k]), c.forms[k]));
      equal &= reference.equal(reference.fold(c.to, row, 0, factors),
                               reference.at(to.data() + i * reference.bytes(c.to), c.to));
    }
    INFO(find(dtype)->name << " of " << c.forms.size() << " operands, scaled " << c.scaled
                           << ", elements " << c.elements << " on " << name(set));
    REQUIRE(equal);
  }
}

}  // namespace

TEST_CASE("operands with a factor are multiplied by it where they are summed", "[device]") {
  std::mt19937_64 random(1);
  for (const DtypeRow& row : dtypes())
    for (Partials partials : {Partials::dtype, Partials::f32}) {
      const bool carries = carry_form(row.dtype, Reduction::premul, partials) == Form::carry;
      for (std::size_t operands = 1; operands <= 4; ++operands)
        for (unsigned scaled = 0; scaled < 1u << operands; ++scaled)
          for (std::size_t elements : {1, 33, 1100}) {
            Case c{std::vector<Form>(operands, Form::dtype), scaled, Form::dtype, elements};
            check(row.dtype, partials, c, random);
            if (!carries) continue;
            c.to = Form::carry;
            c.forms.back() = Form::carry;
            check(row.dtype, partials, c, random);
          }
    }
}

TEST_CASE("a function folds from the left, in blocks that suit its type", "[device]") {
  OwnReduction own;
  own.kind = Reduction::user;
  std::size_t calls = 0;
  // Does not commute: what comes later counts more.
  own.function = [&](const void* in, void* inout, std::size_t count, Dtype dtype) {
    CHECK(dtype == Dtype::i32);
    CHECK(reinterpret_cast<std::uintptr_t>(in) % 4 == 0);
    CHECK(reinterpret_cast<std::uintptr_t>(inout) % 4 == 0);
    const auto* const right = static_cast<const std::int32_t*>(in);
    auto* const left = static_cast<std::int32_t*>(inout);
    for (std::size_t i = 0; i < count; ++i) left[i] = left[i] * 10 + right[i];
    ++calls;
  };
  for (std::size_t elements : {1, 5, 2048, 5000})
    for (std::size_t misalignment : {0, 1}) {
      calls = 0;
      std::array<std::vector<std::byte>, 3> data;
      std::vector<Operand> operands;
      for (std::int32_t k = 0; k < 3; ++k) {
        std::vector<std::byte>& own_data = data[static_cast<std::size_t>(k)];
        own_data.resize(elements * 4 + misalignment);
        for (std::size_t i = 0; i < elements; ++i) {
          const std::int32_t value = k + 1 + static_cast<std::int32_t>(i % 3);
          std::memcpy(own_data.data() + misalignment + i * 4, &value, 4);
        }
        operands.push_back({own_data.data() + misalignment, Form::dtype});
      }
      // The result takes the place of the last operand.
      std::byte* const to = data[2].data() + misalignment;
      fold_by_function(to, Form::dtype, operands.data(), 3, 0, elements, 0, {Dtype::i32, &own});
      CHECK(calls == 2 * ((elements + 2047) / 2048));
      bool right = true;
      for (std::size_t i = 0; i < elements; ++i) {
        std::int32_t got = 0;
        std::memcpy(&got, to + i * 4, 4);
        right &= got == 123 + 111 * static_cast<std::int32_t>(i % 3);
      }
      CHECK(right);
    }
}
