// SPDX-License-Identifier: Apache-2.0
// What single elements become: types, reductions, rounding and overflow.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "support/catch.h"
#include "support/play_cases.h"

using namespace khoro;
using namespace khoro::test;

namespace {

/// The row of that name; fails the test if the library has none.
template <class Rows>
auto named(const Rows& rows, std::string_view name) {
  for (const auto& row : rows)
    if (row.name == name) return row;
  throw std::runtime_error("no row is named " + std::string(name));
}
Dtype dtype_named(std::string_view name) { return named(dtypes(), name).dtype; }
Reduction reduction_named(std::string_view name) { return named(reductions(), name).reduction; }

/// One element in memory.
using Element = std::vector<std::byte>;

template <class T>
Element element_of(T value) {
  Element element(sizeof value);
  std::memcpy(element.data(), &value, sizeof value);
  return element;
}

/// A number that the type has.
Element element_of(Dtype dtype, double value) {
  if (dtype == Dtype::f64) return element_of(value);
  if (dtype == Dtype::f32) return element_of(static_cast<float>(value));
  if (const SmallFormat* format = small_format(dtype)) {
    const unsigned code = format->code(value);
    if (find(dtype)->bytes == 1) return element_of(static_cast<std::uint8_t>(code));
    return element_of(static_cast<std::uint16_t>(code));
  }
  Element whole = element_of(static_cast<std::int64_t>(value));
  whole.resize(find(dtype)->bytes);
  return whole;
}

constexpr CollectiveKind reducing[] = {CollectiveKind::allreduce, CollectiveKind::reduce,
                                       CollectiveKind::reducescatter};

/// Every rank gives one element, `count` times over, and gets `expected` as often, by any algorithm
/// of each collective that reduces.
void reduce_to(Dtype dtype, Reduction reduction, const std::vector<Element>& given,
               const Element& expected, std::size_t count) {
  const int ranks = static_cast<int>(given.size());
  const auto times = [](const Element& element, std::size_t count) {
    std::vector<std::byte> all;
    for (std::size_t i = 0; i < count; ++i) all.insert(all.end(), element.begin(), element.end());
    return all;
  };
  for (CollectiveKind kind : reducing)
    for (const Algorithm* way : ways_of(kind)) {
      Case what;
      what.kind = kind;
      what.dtype = dtype;
      what.reduction = reduction;
      what.ranks = ranks;
      what.root = ranks - 1;
      what.count = count;
      what.forced = way;
      INFO(text(what));
      CHECK(on_ranks(Living::processes, ranks, settings_of(what, case_settings),
                     [&](khoroComm_t comm, int rank) {
                       const Collective collective = what.collective();
                       const auto blocks = static_cast<std::size_t>(collective.input_blocks());
                       const auto in = times(given[std::size_t(rank)], count * blocks);
                       std::vector<std::byte> out = times(expected, count);
                       for (std::byte& byte : out) byte = ~byte;
                       succeed(make_call(what, {rank, in.data(), out.data(), comm}), text(what));
                       if (collective.has_output(rank))
                         expect(out == times(expected, count), text(what) + ": another number");
                     }));
    }
}

bool is_float(const DtypeRow& row) { return !row.integer; }

/// What all these cases have alike is in `like`: of 1 to `most` elements, by any algorithm, with
/// each root in turn.
void add_every_way(std::vector<Case>& cases, Case like, std::size_t most) {
  for (const Algorithm* way : ways_of(*like.kind))
    for (std::size_t count = 1; count <= most; ++count) {
      like.forced = way;
      like.root = static_cast<int>(count % static_cast<std::size_t>(like.ranks));
      like.count = count;
      like.seed = count;
      cases.push_back(like);
    }
}

}  // namespace

TEST_CASE("one rank gets back what it gives at every count", "[api]") {
  for (CollectiveKind kind : reducing)
    for (const char* reduction : {"sum", "avg"}) {
      std::vector<Case> cases;
      for (std::size_t count = 1; count <= 4100; ++count)
        cases.push_back({.kind = kind,
                         .dtype = dtype_named("bf16"),
                         .reduction = reduction_named(reduction),
                         .count = count});
      play_cases(Living::processes, cases);
    }
}

TEST_CASE("one rank gets back what it gives of any type by any reduction and algorithm", "[api]") {
  std::vector<Case> cases;
  for (const DtypeRow& dtype : dtypes())
    for (const ReductionRow& reduction : reductions())
      for (CollectiveKind kind : reducing)
        for (const Algorithm* way : ways_of(kind))
          for (std::size_t count : {1, 2, 31, 127, 128, 129, 1023, 1025, 4100}) {
            if (!applies(reduction.reduction, dtype.dtype)) continue;
            cases.push_back({.kind = kind,
                             .dtype = dtype.dtype,
                             .reduction = reduction.reduction,
                             .count = count,
                             .forced = way,
                             .seed = count});
          }
  play_cases(Living::processes, cases);
}

TEST_CASE("an average is the sum divided once, whatever the count", "[api]") {
  for (const DtypeRow& dtype : dtypes())
    for (int ranks : {2, 3}) {
      if (!is_float(dtype)) continue;
      // (1 + 2) / 2 and (1 + 2 + 3) / 3
      const Element expected = element_of(dtype.dtype, ranks == 2 ? 1.5 : 2);
      INFO(dtype.name << ", " << ranks << " ranks");
      CHECK(on_ranks(Living::processes, ranks, "", [&](khoroComm_t comm, int rank) {
        for (std::size_t count = 1; count <= 130; ++count) {
          Case what;
          what.kind = CollectiveKind::allreduce;
          what.dtype = dtype.dtype;
          what.reduction = Reduction::avg;
          what.ranks = ranks;
          what.count = count;
          std::vector<std::byte> buffer;
          const Element mine = element_of(dtype.dtype, rank + 1);
          for (std::size_t i = 0; i < count; ++i)
            buffer.insert(buffer.end(), mine.begin(), mine.end());
          succeed(make_call(what, {rank, buffer.data(), buffer.data(), comm}), text(what));
          for (std::size_t i = 0; i < count; ++i)
            expect(std::memcmp(buffer.data() + i * dtype.bytes, expected.data(), dtype.bytes) == 0,
                   text(what) + ": element " + std::to_string(i) + " is another number");
        }
      }));
    }
}

TEST_CASE("averages of two and three ranks are right at every small count", "[api]") {
  for (const char* name : {"f32", "f16", "bf16"})
    for (CollectiveKind kind : reducing) {
      std::vector<Case> cases;
      const Dtype dtype = dtype_named(name);
      for (int ranks : {2, 3})
        add_every_way(cases,
                      {.kind = kind, .dtype = dtype, .reduction = Reduction::avg, .ranks = ranks},
                      130);
      play_cases(Living::threads, cases);
    }
}

TEST_CASE("an average overflows only where the wider sum that it is made of does", "[api]") {
  struct Row {
    const char* dtype;
    std::uint64_t given, expected;
  };
  constexpr Row rows[] = {
      {"f16", 0x7b53, 0x7b53},  // 60000
      {"f16", 0x7bff, 0x7bff},
      {"bf16", 0x7f7f, 0x7f80},
      {"bf16", 0xff7f, 0xff80},
      {"f32", 0x7f7fffff, 0x7f800000},
      {"f64", 0x7fefffffffffffff, 0x7ff0000000000000},
      {"f8e4m3", 0x7e, 0x7e},
      {"f8e5m2", 0x7b, 0x7b},
      {"i8", 0x7f, 0x7f},
      {"i8", 0x80, 0x80},
      {"u8", 0xff, 0xff},
      {"i32", 0x7fffffff, 0x7fffffff},
      {"i32", 0x80000000, 0x80000000},
      {"u32", 0xffffffff, 0xffffffff},
      {"i64", 0x7fffffffffffffff, 0x7fffffffffffffff},
      {"i64", 0x8000000000000000, 0x8000000000000000},
      {"u64", 0xffffffffffffffff, 0xffffffffffffffff},
  };
  for (const Row& row : rows) {
    const Dtype dtype = dtype_named(row.dtype);
    const auto element = [&](std::uint64_t bits) {
      Element bytes = element_of(bits);
      bytes.resize(find(dtype)->bytes);
      return bytes;
    };
    reduce_to(dtype, Reduction::avg, std::vector<Element>(10, element(row.given)),
              element(row.expected), 5);
  }
}

TEST_CASE("integers wrap in two's complement", "[api]") {
  const auto check = [](const char* dtype, const char* reduction, std::int64_t a, std::int64_t b,
                        std::int64_t expected) {
    const Dtype type = dtype_named(dtype);
    const auto element = [&](std::int64_t value) {
      Element bytes = element_of(value);
      bytes.resize(find(type)->bytes);
      return bytes;
    };
    reduce_to(type, reduction_named(reduction), {element(a), element(b)}, element(expected), 37);
  };
  check("i8", "sum", 120, 100, -36);
  check("u8", "sum", 200, 100, 44);
  check("i32", "sum", 2147483647, 1, -2147483648);
  check("u8", "prod", 16, 17, 16);
  check("i64", "sum", INT64_MAX, 1, INT64_MIN);
  check("u32", "sum", 4294967295, 2, 1);
}

TEST_CASE("a few doubles in place are right with every algorithm", "[api]") {
  std::vector<Case> cases;
  for (CollectiveKind kind : reducing)
    for (int ranks = 2; ranks <= 9; ++ranks)
      add_every_way(cases, {.kind = kind, .dtype = Dtype::f64, .ranks = ranks, .in_place = true},
                    12);
  play_cases(Living::processes, cases);
}
