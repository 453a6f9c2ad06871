// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/values.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "support/catch.h"
#include "support/scalar.h"

using namespace khoro::benchmark;
using khoro::Form;
using khoro::test::Scalar;
using khoro::test::ScalarReference;

namespace {

template <class T>
std::vector<T> inputs(const Draw& draw, int rank, std::size_t count) {
  std::vector<T> elements(count);
  fill(draw, rank, count, elements.data());
  return elements;
}

TypeRow type(khoroDataType_t wanted) {
  for (const TypeRow& row : types())
    if (row.type == wanted) return row;
  throw std::logic_error("no such type");
}

/// Folds the inputs of all ranks in the order given.
std::vector<float> sum(const Draw& draw, const std::vector<int>& order, std::size_t count) {
  std::vector<float> total = inputs<float>(draw, order.front(), count);
  for (std::size_t k = 1; k < order.size(); ++k) {
    const auto next = inputs<float>(draw, order[k], count);
    for (std::size_t i = 0; i < count; ++i) total[i] += next[i];
  }
  return total;
}

/// The inputs of all ranks, reduced one element at a time.
class Folding {
 public:
  Folding(const Draw& draw, std::size_t count)
      : draw_(draw),
        count_(count),
        reference_(
            {static_cast<khoro::Dtype>(draw.type.type), static_cast<khoro::Reduction>(draw.op)}) {
    for (int rank = 0; rank < draw.ranks; ++rank) {
      inputs_.emplace_back(count * draw.type.bytes);
      fill(draw, rank, count, inputs_.back().data());
    }
  }

  /// That folding in this order gives what is expected: `together` ranks at a time, each of whose
  /// results is rounded to the carry type.
  bool right(const std::vector<int>& order, std::size_t together) const {
    std::vector<std::byte> output(count_ * draw_.type.bytes);
    for (std::size_t i = 0; i < count_; ++i) {
      const Scalar result = fold(order, together, i);
      std::memcpy(&output[i * draw_.type.bytes], result.bytes.data(), draw_.type.bytes);
    }
    return compare(draw_, {Origin::all_ranks, 0, 0, count_}, output.data()).count == 0;
  }

 private:
  Scalar fold(const std::vector<int>& order, std::size_t together, std::size_t i) const {
    std::vector<Scalar> partial;
    for (int rank : order) {
      partial.push_back(reference_.at(
          &inputs_[static_cast<std::size_t>(rank)][i * draw_.type.bytes], Form::dtype));
      if (partial.size() == together) partial = {reference_.fold(Form::carry, partial, 0)};
    }
    const bool average = draw_.op == khoroAvg;
    return reference_.fold(Form::dtype, partial,
                           average ? static_cast<std::uint32_t>(draw_.ranks) : 0);
  }

  Draw draw_;
  std::size_t count_;
  ScalarReference reference_;
  std::vector<std::vector<std::byte>> inputs_;
};

}  // namespace

TEST_CASE("every order of folding gives the expected bits, for every type and reduction",
          "[benchmarks]") {
  for (const TypeRow& row : types())
    for (const OpRow& op : ops()) {
      if (!applies(op, row)) continue;
      for (int ranks : {1, 2, 3, 7, 40}) {
        const Folding folding({row, op.op, ranks, 11}, 300);
        std::vector<int> order(static_cast<std::size_t>(ranks));
        std::iota(order.begin(), order.end(), 0);
        INFO(row.name << " " << op.name << " of " << ranks);
        CHECK(folding.right(order, 2));
        CHECK(folding.right(order, order.size() + 1));
        std::reverse(order.begin(), order.end());
        CHECK(folding.right(order, 3));
        std::rotate(order.begin(), order.begin() + ranks / 2, order.end());
        CHECK(folding.right(order, 2));
      }
    }
}

TEST_CASE("the bits of floats are not reduced", "[benchmarks]") {
  for (const TypeRow& row : types())
    for (const OpRow& op : ops()) {
      const bool integer = row.name.find("int") != std::string_view::npos;
      CHECK(applies(op, row) == (integer || op.name[0] != 'b'));
    }
}

TEST_CASE("sums of floats do not depend on the order of folding", "[benchmarks]") {
  const Draw draw{type(khoroFloat32), khoroSum, 5, 7};
  const auto forward = sum(draw, {0, 1, 2, 3, 4}, 500);
  CHECK(forward == sum(draw, {3, 1, 4, 0, 2}, 500));
  CHECK(compare(draw, {Origin::all_ranks, 0, 0, 500}, forward.data()).count == 0);
}

TEST_CASE("inputs differ between ranks, elements and calls", "[benchmarks]") {
  const Draw draw{type(khoroFloat64), khoroSum, 3, 1};
  Draw later = draw;
  later.seed = 2;
  const auto one = inputs<double>(draw, 0, 64);
  CHECK(one != inputs<double>(draw, 1, 64));
  CHECK(one != inputs<double>(later, 0, 64));
  CHECK(one[0] != one[1]);
}

TEST_CASE("one wrong bit is one wrong element, and its place is told", "[benchmarks]") {
  for (const TypeRow& row : types()) {
    const Draw draw{row, khoroSum, 2, 3};
    std::vector<char> copy(row.bytes * 40);
    fill(draw, 1, 40, copy.data());
    CHECK(compare(draw, {1, 0, 0, 40}, copy.data()).count == 0);
    copy[row.bytes * 17] ^= 1;
    const Wrong wrong = compare(draw, {1, 0, 0, 40}, copy.data());
    CHECK(wrong.count == 1);
    CHECK(wrong.first == 17);
  }
}

TEST_CASE("a part of an output is compared with its own origin", "[benchmarks]") {
  const Draw draw{type(khoroInt32), khoroSum, 2, 4};
  auto gathered = inputs<std::int32_t>(draw, 0, 10);
  const auto second = inputs<std::int32_t>(draw, 1, 10);
  gathered.insert(gathered.end(), second.begin(), second.end());
  CHECK(compare(draw, {1, 0, 10, 10}, gathered.data()).count == 0);
  CHECK(compare(draw, {1, 2, 12, 8}, gathered.data()).count == 0);
  CHECK(compare(draw, {0, 0, 10, 10}, gathered.data()).count == 10);
}

TEST_CASE("an average truncates toward zero and never overflows", "[benchmarks]") {
  const Draw draw{type(khoroInt32), khoroAvg, 3, 5};
  std::vector<std::int32_t> average(200);
  std::vector<std::int64_t> total(average.size());
  for (int rank = 0; rank < draw.ranks; ++rank) {
    const auto input = inputs<std::int32_t>(draw, rank, total.size());
    for (std::size_t i = 0; i < total.size(); ++i) total[i] += input[i];
  }
  for (std::size_t i = 0; i < total.size(); ++i)
    average[i] = static_cast<std::int32_t>(total[i] / draw.ranks);
  CHECK(compare(draw, {Origin::all_ranks, 0, 0, average.size()}, average.data()).count == 0);
}

TEST_CASE("minima meet NaN and zeros of both signs", "[benchmarks]") {
  const Draw draw{type(khoroFloat32), khoroMin, 2, 6};
  const std::size_t count = 20000;
  const auto a = inputs<float>(draw, 0, count);
  const auto b = inputs<float>(draw, 1, count);
  std::vector<float> least(count);
  std::size_t nans = 0;
  std::size_t negative_zeros = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const bool first = a[i] < b[i] || (a[i] == b[i] && std::signbit(a[i]));
    least[i] = std::isnan(a[i]) || first ? a[i] : b[i];
    if (std::isnan(b[i])) least[i] = b[i];
    nans += std::isnan(least[i]);
    negative_zeros += least[i] == 0 && std::signbit(least[i]);
  }
  CHECK(nans > 0);
  CHECK(negative_zeros > 0);
  CHECK(compare(draw, {Origin::all_ranks, 0, 0, count}, least.data()).count == 0);
}

TEST_CASE("sums of bfloat16 stay exact with more ranks than its integers", "[benchmarks]") {
  const Draw draw{type(khoroBfloat16), khoroSum, 700, 8};
  std::vector<double> total(100);
  for (int rank = 0; rank < draw.ranks; ++rank) {
    const auto bits = inputs<std::uint16_t>(draw, rank, total.size());
    for (std::size_t i = 0; i < total.size(); ++i) {
      const std::uint32_t wide = static_cast<std::uint32_t>(bits[i]) << 16;
      float value;
      std::memcpy(&value, &wide, sizeof value);
      total[i] += value;
    }
  }
  std::vector<std::uint16_t> sums(total.size());
  for (std::size_t i = 0; i < total.size(); ++i) {
    const auto value = static_cast<float>(total[i]);
    std::uint32_t wide;
    std::memcpy(&wide, &value, sizeof wide);
    CHECK((wide & 0xffff) == 0);  // no rounding was needed
    sums[i] = static_cast<std::uint16_t>(wide >> 16);
  }
  CHECK(compare(draw, {Origin::all_ranks, 0, 0, total.size()}, sums.data()).count == 0);
}
