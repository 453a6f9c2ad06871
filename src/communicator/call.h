// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/dtype.h"
#include "executor/execution.h"
#include "plan/collective.h"

namespace khoro {

/// What a caller can ask of a communicator. The collectives have the values of `CollectiveKind`.
enum class CallKind : std::uint8_t {
  allreduce,
  broadcast,
  allgather,
  reducescatter,
  barrier,
  send,
  recv,
};
static_assert(static_cast<int>(CallKind::allreduce) == static_cast<int>(CollectiveKind::allreduce));
static_assert(static_cast<int>(CallKind::broadcast) == static_cast<int>(CollectiveKind::broadcast));
static_assert(static_cast<int>(CallKind::allgather) == static_cast<int>(CollectiveKind::allgather));
static_assert(static_cast<int>(CallKind::reducescatter) ==
              static_cast<int>(CollectiveKind::reducescatter));
static_assert(static_cast<int>(CallKind::barrier) == static_cast<int>(CollectiveKind::barrier));

inline constexpr int call_kinds = 7;

/// The part of a call that must be equal on all ranks (of a send and its receive: all but the
/// kind). `peer` is the root of a rooted collective, the other end of a send or receive, else 0;
/// what a call does not have (a barrier's count and type, a broadcast's reduction) has its default.
struct Signature {
  CallKind kind = CallKind::allreduce;
  Dtype dtype = Dtype::f32;
  Reduction reduction = Reduction::sum;
  std::int32_t peer = 0;
  std::uint64_t count = 0;

  bool point_to_point() const noexcept { return kind >= CallKind::send; }
  bool reduces() const noexcept {
    return kind == CallKind::allreduce || kind == CallKind::reducescatter;
  }
  /// Everything but the count in one word, for comparing, hashing and records.
  std::uint64_t word() const noexcept {
    return static_cast<std::uint64_t>(kind) | static_cast<std::uint64_t>(dtype) << 8 |
           static_cast<std::uint64_t>(reduction) << 16 |
           static_cast<std::uint64_t>(static_cast<std::uint32_t>(peer)) << 32;
  }
  bool operator==(const Signature&) const = default;
};

/// A call as the caller made it. Buffers are borrowed until it has finished.
struct Call {
  Signature signature;
  CallBuffers buffers;
};

std::string_view name(CallKind kind) noexcept;

/// "allreduce of 1024 x f32, sum", "broadcast of 3 x i64 from rank 2", "send of 5 x f64 to rank 1".
std::string describe(const Signature& signature);

/// How a call is named in reports: "allreduce #17".
std::string title(CallKind kind, std::uint64_t number);

}  // namespace khoro
