// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/dtype.h"
#include "executor/execution.h"
#include "plan/collective.h"

namespace khoro {

/// What a caller can ask of a communicator. The collectives have the values of `CollectiveKind`;
/// those that end in v are the same with blocks that differ in length; a split moves what its ranks
/// want as an allgather does. Two bytes, so that a Signature has no padding.
enum class CallKind : std::uint16_t {
  allreduce,
  broadcast,
  allgather,
  reducescatter,
  barrier,
  reduce,
  gather,
  scatter,
  alltoall,
  allgatherv,
  reducescatterv,
  gatherv,
  scatterv,
  alltoallv,
  split,
  send,
  recv,
};
static_assert(static_cast<int>(CallKind::allreduce) == static_cast<int>(CollectiveKind::allreduce));
static_assert(static_cast<int>(CallKind::broadcast) == static_cast<int>(CollectiveKind::broadcast));
static_assert(static_cast<int>(CallKind::allgather) == static_cast<int>(CollectiveKind::allgather));
static_assert(static_cast<int>(CallKind::reducescatter) ==
              static_cast<int>(CollectiveKind::reducescatter));
static_assert(static_cast<int>(CallKind::barrier) == static_cast<int>(CollectiveKind::barrier));
static_assert(static_cast<int>(CallKind::reduce) == static_cast<int>(CollectiveKind::reduce));
static_assert(static_cast<int>(CallKind::gather) == static_cast<int>(CollectiveKind::gather));
static_assert(static_cast<int>(CallKind::scatter) == static_cast<int>(CollectiveKind::scatter));
static_assert(static_cast<int>(CallKind::alltoall) == static_cast<int>(CollectiveKind::alltoall));

inline constexpr int call_kinds = 17;

/// What meets a send, or a receive, on the other rank.
constexpr CallKind other_end(CallKind kind) noexcept {
  return kind == CallKind::send ? CallKind::recv : CallKind::send;
}

/// The part of a call that must be equal on all ranks (of a send and its receive: all but the
/// kind). `peer` is the root of a rooted collective, the other end of a send or receive, a hash of
/// the blocks where all ranks know them, else 0; then `count` is that of all blocks. What a call
/// does not have (a barrier's count and type, the count of blocks that only their ranks know) has
/// its default.
struct Signature {
  CallKind kind = CallKind::allreduce;
  Dtype dtype = Dtype::f32;
  Reduction reduction = Reduction::sum;
  std::int32_t peer = 0;
  std::uint64_t count = 0;

  bool point_to_point() const noexcept { return kind >= CallKind::send; }
  /// What the ranks do together. Precondition: it is no send or receive.
  Collective collective(int ranks) const noexcept {
    Collective collective{collective_kind(), ranks};
    collective.unequal = kind >= CallKind::allgatherv && kind <= CallKind::alltoallv;
    if (collective.has_root()) collective.root = peer;
    collective.average = collective.reduces() && reduction == Reduction::avg;
    collective.premul = collective.reduces() && reduction == Reduction::premul;
    return collective;
  }
  /// Blocks are unequal, and a rank knows its own alone.
  bool has_local_blocks() const noexcept {
    return kind >= CallKind::gatherv && kind <= CallKind::alltoallv;
  }
  /// It needs no other rank.
  bool moves_nothing() const noexcept {
    return count == 0 && kind != CallKind::barrier && !has_local_blocks();
  }
  /// Everything but the count in one word, for comparing, hashing and records.
  std::uint64_t word() const noexcept {
    return std::bit_cast<std::array<std::uint64_t, 2>>(*this)[0];
  }
  static Signature of(std::uint64_t word, std::uint64_t count) noexcept {
    return std::bit_cast<Signature>(std::array<std::uint64_t, 2>{word, count});
  }
  bool operator==(const Signature& other) const noexcept {
    return word() == other.word() && count == other.count;
  }

 private:
  CollectiveKind collective_kind() const noexcept {
    switch (kind) {
      case CallKind::split:
      case CallKind::allgatherv:
        return CollectiveKind::allgather;
      case CallKind::reducescatterv:
        return CollectiveKind::reducescatter;
      case CallKind::gatherv:
        return CollectiveKind::gather;
      case CallKind::scatterv:
        return CollectiveKind::scatter;
      case CallKind::alltoallv:
        return CollectiveKind::alltoall;
      default:
        return static_cast<CollectiveKind>(kind);
    }
  }
};
static_assert(sizeof(Signature) == 16 && std::has_unique_object_representations_v<Signature>);

/// The buffers of a call on one rank in bytes, and where its input may be the same memory as its
/// output.
struct Extent {
  std::uint64_t input = 0;
  std::uint64_t output = 0;
  /// In place means: input + input_at == output + output_at.
  std::uint64_t input_at = 0;
  std::uint64_t output_at = 0;
  bool reads = true;
  bool writes = true;

  /// What is read and written is there, and apart or in place.
  bool fits(const CallBuffers& buffers) const noexcept {
    const auto in = reinterpret_cast<std::uintptr_t>(buffers.input);
    const auto out = reinterpret_cast<std::uintptr_t>(buffers.output);
    if ((reads && in == 0) || (writes && out == 0)) return false;
    return !reads || !writes || in + input_at == out + output_at || in >= out + output ||
           out >= in + input;
  }
};

/// A call as the caller made it. Buffers are borrowed until it has finished.
struct Call {
  Signature signature;
  CallBuffers buffers;
  /// Where they are unequal. It also owns what `own` points to.
  std::shared_ptr<const Blocks> blocks = nullptr;
  const OwnReduction* own = nullptr;  // of a reduction that was made
  /// Of a send or receive, which meets one with the same tag; 0: a plain one.
  std::uint32_t tag = 0;
  /// On a GPU, once it is checked: those buffers that it uses, as kernels see them.
  CallBuffers in_kernels = {};
  std::uint64_t reached_by = 0;  // the GPUs whose kernels reach both: a DeviceSet
};

std::string_view name(CallKind kind) noexcept;

/// As its caller wrote it: "khoroAllReduce(1024 x khoroFloat32, khoroSum)", "khoroBroadcast(3 x
/// khoroInt64, root 2)", "khoroSend(5 x khoroFloat64, to rank 1)", "khoroRecvTag(5 x khoroFloat64,
/// from rank 0, tag 7)", "khoroBarrier()".
std::string describe(const Signature& signature, std::uint32_t tag = 0);

/// How a call is named in reports: "allreduce #17", "send #3 with tag 7".
std::string title(CallKind kind, std::uint64_t number, std::uint32_t tag = 0);
/// The same, and of a message its other end: "recv #2 from rank 0 with tag 7".
std::string title(const Signature& signature, std::uint64_t number, std::uint32_t tag = 0);

}  // namespace khoro
