// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace khoro {

enum class CollectiveKind : std::uint8_t {
  allreduce,
  broadcast,
  allgather,
  reducescatter,
  barrier
};

/// Where an output chunk comes from: chunk `chunk` of the inputs of rank `from`, or of all ranks
/// reduced.
struct Requirement {
  static constexpr int all_ranks = -1;
  int from = all_ranks;
  int chunk = 0;
  bool operator==(const Requirement&) const = default;
};

/// What is asked: what each rank's buffers hold before and must hold after, as contributions
/// (rank, chunk). A value; says nothing of bytes or types.
///
/// The *whole* vector has `chunks` chunks, a number that the algorithm chooses. Input and output
/// are the whole vector, or one block (the whole divided by `ranks`) of it: allgather's input and
/// reducescatter's output are blocks. Block b is chunks [b*chunks/ranks, (b+1)*chunks/ranks).
/// Barrier has no chunks; it asks that each rank ends after every rank has started.
struct Collective {
  CollectiveKind kind = CollectiveKind::allreduce;
  int ranks = 1;
  int root = 0;
  /// The reduced value is divided by the number of ranks, once.
  bool average = false;

  bool reduces() const noexcept {
    return kind == CollectiveKind::allreduce || kind == CollectiveKind::reducescatter;
  }
  bool has_root() const noexcept { return kind == CollectiveKind::broadcast; }

  int input_chunks(int chunks) const noexcept;
  int output_chunks(int chunks) const noexcept;
  /// What chunk `chunk` of the output of `rank` must hold; nothing if that rank receives nothing.
  std::optional<Requirement> requirement(int rank, int chunk, int chunks) const noexcept;
  /// The input chunk of `rank` that may be the same memory as output chunk `chunk`, when the call
  /// is in place: broadcast and allreduce i -> i, allgather the rank's block, reducescatter
  /// likewise.
  std::optional<int> in_place_input(int rank, int output_chunk, int chunks) const noexcept;

  std::uint64_t hash() const noexcept;
  bool operator==(const Collective&) const = default;
};

std::string_view name(CollectiveKind kind) noexcept;
std::optional<CollectiveKind> collective_named(std::string_view name) noexcept;

}  // namespace khoro
