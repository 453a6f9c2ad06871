// SPDX-License-Identifier: Apache-2.0
#include "plan/collective.h"

#include <array>
#include <cstddef>

#include "base/hash.h"

namespace khoro {
namespace {

// In the order of the enumeration.
constexpr std::array<std::string_view, 5> kind_names = {"allreduce", "broadcast", "allgather",
                                                        "reducescatter", "barrier"};

}  // namespace

std::string_view name(CollectiveKind kind) noexcept {
  return kind_names[static_cast<std::size_t>(kind)];
}

std::optional<CollectiveKind> collective_named(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kind_names.size(); ++i)
    if (kind_names[i] == name) return static_cast<CollectiveKind>(i);
  return std::nullopt;
}

int Collective::input_chunks(int chunks) const noexcept {
  if (kind == CollectiveKind::barrier) return 0;
  return kind == CollectiveKind::allgather ? chunks / ranks : chunks;
}

int Collective::output_chunks(int chunks) const noexcept {
  if (kind == CollectiveKind::barrier) return 0;
  return kind == CollectiveKind::reducescatter ? chunks / ranks : chunks;
}

std::optional<Requirement> Collective::requirement(int rank, int chunk, int chunks) const noexcept {
  const int block = chunks / ranks;
  switch (kind) {
    case CollectiveKind::allreduce:
      return Requirement{Requirement::all_ranks, chunk};
    case CollectiveKind::broadcast:
      return Requirement{root, chunk};
    case CollectiveKind::allgather:
      return Requirement{chunk / block, chunk % block};
    case CollectiveKind::reducescatter:
      return Requirement{Requirement::all_ranks, rank * block + chunk};
    case CollectiveKind::barrier:
      break;
  }
  return std::nullopt;
}

std::optional<int> Collective::in_place_input(int rank, int output_chunk,
                                              int chunks) const noexcept {
  const int block = chunks / ranks;
  switch (kind) {
    case CollectiveKind::allreduce:
    case CollectiveKind::broadcast:
      return output_chunk;
    case CollectiveKind::allgather:
      if (output_chunk / block != rank) return std::nullopt;
      return output_chunk % block;
    case CollectiveKind::reducescatter:
      return rank * block + output_chunk;
    case CollectiveKind::barrier:
      break;
  }
  return std::nullopt;
}

std::uint64_t Collective::hash() const noexcept {
  std::uint64_t hash = combine(static_cast<std::uint64_t>(kind), static_cast<std::uint64_t>(ranks));
  hash = combine(hash, has_root() ? static_cast<std::uint64_t>(root) : 0);
  return combine(hash, reduces() && average);
}

}  // namespace khoro
