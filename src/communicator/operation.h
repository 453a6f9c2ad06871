// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/time.h"
#include "communicator/call.h"
#include "communicator/receipt.h"
#include "executor/execution.h"

namespace khoro {

/// One call under way, as the thread that made it sees it. The communicator fills it in.
struct Operation {
  Call call;
  /// Counts the collectives of a communicator, or the messages to or from one peer with one tag,
  /// from 1.
  std::uint64_t number = 0;
  /// Null: a message with a tag, or nothing to move, and nothing to wait for but ranks that are
  /// many calls behind.
  Execution* execution = nullptr;
  bool on_gpu = false;       // then a stream holds it
  std::uint32_t digest = 0;  // of a call on a GPU
  std::uint32_t turn = 0;    // of a collective there: done once so many calls of its launch are
  std::uint64_t place;       // of a message's record
  Receipt receipt;           // of a receive with a tag

  // Of the waiting.
  bool waits = false;  // it has been seen to wait, and only then the times below are set
  Time first_look;
  Time deadline;
  Time next_comparison;
  Time straggler_report;
  enum : std::uint8_t { refusal = 1, crossing = 2 };
  std::uint8_t reported = 0;  // of these, what was logged
  /// The peer that has left while this rank waited for it; -1: none has.
  int left = -1;
  /// It has ended on its GPU, and others of its launch may not have.
  bool ended = false;
};

/// The digest of one call in the headers of its messages; two multiplications, for it is on the way
/// of every call. All that does not change between equal calls is in `base`.
inline std::uint32_t digest(std::uint64_t base, std::uint64_t number) noexcept {
  std::uint64_t x = (base + number) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 32)) * 0x94d049bb133111ebu;
  return static_cast<std::uint32_t>(x >> 32);
}

/// What its program is asked for.
inline CallArguments arguments_of(const Operation& operation, std::uint32_t digest) noexcept {
  const Signature& signature = operation.call.signature;
  return {operation.call.buffers, signature.count, signature.dtype,
          signature.reduction,    digest,          operation.call.blocks.get(),
          operation.call.own};
}

}  // namespace khoro
