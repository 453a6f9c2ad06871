// SPDX-License-Identifier: Apache-2.0
#include "plan/collective.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/hash.h"

namespace khoro {
namespace {

// In the order of the enumeration.
constexpr std::array<std::string_view, 9> kind_names = {"allreduce",     "broadcast", "allgather",
                                                        "reducescatter", "barrier",   "reduce",
                                                        "gather",        "scatter",   "alltoall"};

}  // namespace

std::string_view name(CollectiveKind kind) noexcept {
  return kind_names[static_cast<std::size_t>(kind)];
}

std::optional<CollectiveKind> collective_named(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kind_names.size(); ++i)
    if (kind_names[i] == name) return static_cast<CollectiveKind>(i);
  return std::nullopt;
}

int Collective::input_blocks() const noexcept {
  const bool all = kind == CollectiveKind::reducescatter || kind == CollectiveKind::scatter ||
                   kind == CollectiveKind::alltoall;
  return all ? ranks : 1;
}

int Collective::output_blocks() const noexcept {
  const bool all = kind == CollectiveKind::allgather || kind == CollectiveKind::gather ||
                   kind == CollectiveKind::alltoall;
  return all ? ranks : 1;
}

int Collective::blocks() const noexcept { return std::max(input_blocks(), output_blocks()); }

int Collective::input_chunks(int chunks) const noexcept {
  if (kind == CollectiveKind::barrier) return 0;
  return chunks / blocks() * input_blocks();
}

int Collective::output_chunks(int chunks) const noexcept {
  if (kind == CollectiveKind::barrier) return 0;
  return chunks / blocks() * output_blocks();
}

std::optional<Requirement> Collective::requirement(int rank, int chunk, int chunks) const noexcept {
  if (!has_output(rank)) return std::nullopt;
  const int block = chunks / ranks;
  switch (kind) {
    case CollectiveKind::allreduce:
    case CollectiveKind::reduce:
      return Requirement{Requirement::all_ranks, chunk};
    case CollectiveKind::broadcast:
      return Requirement{root, chunk};
    case CollectiveKind::allgather:
    case CollectiveKind::gather:
      return Requirement{chunk / block, chunk % block};
    case CollectiveKind::reducescatter:
      return Requirement{Requirement::all_ranks, rank * block + chunk};
    case CollectiveKind::scatter:
      return Requirement{root, rank * block + chunk};
    case CollectiveKind::alltoall:
      return Requirement{chunk / block, rank * block + chunk % block};
    case CollectiveKind::barrier:
      break;
  }
  return std::nullopt;
}

std::optional<int> Collective::in_place_input(int rank, int output_chunk,
                                              int chunks) const noexcept {
  if (!has_input(rank) || !has_output(rank)) return std::nullopt;
  const int block = chunks / ranks;
  switch (kind) {
    case CollectiveKind::allreduce:
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
    case CollectiveKind::alltoall:
      return output_chunk;
    case CollectiveKind::allgather:
    case CollectiveKind::gather:
      if (output_chunk / block != rank) return std::nullopt;
      return output_chunk % block;
    case CollectiveKind::reducescatter:
    case CollectiveKind::scatter:
      return rank * block + output_chunk;
    case CollectiveKind::barrier:
      break;
  }
  return std::nullopt;
}

std::uint64_t Collective::hash() const noexcept {
  std::uint64_t hash = combine(static_cast<std::uint64_t>(kind), static_cast<std::uint64_t>(ranks));
  hash = combine(hash, has_root() ? static_cast<std::uint64_t>(root) : 0);
  hash = combine(hash, reduces() && average);
  const std::uint64_t more = static_cast<std::uint64_t>(unequal) |
                             static_cast<std::uint64_t>(reduces() && rank_order) << 1 |
                             static_cast<std::uint64_t>(reduces() && premul) << 2;
  return more != 0 ? combine(hash, more) : hash;
}

}  // namespace khoro
