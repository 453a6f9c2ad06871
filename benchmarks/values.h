// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <khoro/khoro.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace khoro::benchmark {

struct TypeRow {
  std::string_view name;  // nccl-tests' word
  khoroDataType_t type;
  std::size_t bytes;
};

struct OpRow {
  std::string_view name;
  khoroRedOp_t op;
  bool integers_only;
};

std::span<const TypeRow> types() noexcept;
std::span<const OpRow> ops() noexcept;
bool applies(const OpRow& op, const TypeRow& type) noexcept;

/// What determines the inputs of one checked call. Inputs are drawn so that every order of folding
/// gives the same bits: integers wrap anyway, and floats are integers times a power of two, small
/// enough that no partial sum rounds; for products they are powers of two, near enough to one that
/// none leaves its range. So the expected result needs no knowledge of the algorithm.
struct Draw {
  TypeRow type;
  khoroRedOp_t op;
  int ranks;
  std::uint64_t seed;
};

/// Writes the first `count` input elements of `rank`.
void fill(const Draw& draw, int rank, std::size_t count, void* input);

/// Where a run of output elements comes from: elements `from`.. of `rank`'s input, or of the
/// reduction over all ranks.
struct Origin {
  static constexpr int all_ranks = -1;
  int rank;
  std::size_t from;
  std::size_t first;  // output element
  std::size_t count;
};

struct Wrong {
  std::size_t count = 0;
  std::size_t first = 0;  // meaningless while count is 0
};

/// Compares bits; all NaNs are equal.
Wrong compare(const Draw& draw, const Origin& origin, const void* output);

}  // namespace khoro::benchmark
