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
  barrier,
  reduce,
  gather,
  scatter,
  alltoall
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
/// The *whole* vector has `chunks` chunks, a number that the algorithm chooses. Where it is made of
/// one block per rank, block b is chunks [b*chunks/ranks, (b+1)*chunks/ranks). Input and output are
/// the whole vector, but for what is one block of it: the input of allgather and gather, the output
/// of reducescatter and scatter. Only the root has an input of broadcast and scatter, and an output
/// of reduce and gather. Barrier has no chunks; it asks that each rank ends after every rank has
/// started.
struct Collective {
  CollectiveKind kind = CollectiveKind::allreduce;
  int ranks = 1;
  int root = 0;
  /// The reduced value is divided by the number of ranks, once.
  bool average = false;
  /// Blocks may differ in length.
  bool unequal = false;
  /// The contributions are folded from the left in rank order. Whoever asks for it carries partial
  /// results in the accumulator's type, so that what is stored or sent in between changes nothing.
  bool rank_order = false;
  /// Each contribution is multiplied by a factor of its rank's, once.
  bool premul = false;

  bool reduces() const noexcept {
    return kind == CollectiveKind::allreduce || kind == CollectiveKind::reducescatter ||
           kind == CollectiveKind::reduce;
  }
  bool has_root() const noexcept { return root_alone_gives() || root_alone_gets(); }
  bool has_input(int rank) const noexcept { return rank == root || !root_alone_gives(); }
  bool has_output(int rank) const noexcept { return rank == root || !root_alone_gets(); }

  /// Blocks of the whole vector, of the input and of the output; what is not made of blocks is one.
  int blocks() const noexcept;
  int input_blocks() const noexcept;
  int output_blocks() const noexcept;
  int input_chunks(int chunks) const noexcept;
  int output_chunks(int chunks) const noexcept;
  /// What chunk `chunk` of the output of `rank` must hold; nothing if that rank receives nothing.
  std::optional<Requirement> requirement(int rank, int chunk, int chunks) const noexcept;
  /// The input chunk of `rank` that may be the same memory as output chunk `chunk`, when the call
  /// is in place: a block lies where the rank's own (of gather and scatter, the root's) lies in the
  /// whole vector; two whole vectors, or blocks, lie chunk upon chunk.
  std::optional<int> in_place_input(int rank, int output_chunk, int chunks) const noexcept;

  std::uint64_t hash() const noexcept;
  bool operator==(const Collective&) const = default;

 private:
  bool root_alone_gives() const noexcept {
    return kind == CollectiveKind::broadcast || kind == CollectiveKind::scatter;
  }
  bool root_alone_gets() const noexcept {
    return kind == CollectiveKind::reduce || kind == CollectiveKind::gather;
  }
};

std::string_view name(CollectiveKind kind) noexcept;
std::optional<CollectiveKind> collective_named(std::string_view name) noexcept;

}  // namespace khoro
