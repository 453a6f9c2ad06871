// SPDX-License-Identifier: Apache-2.0
#include "executor/gpu/block_table.h"

#include <type_traits>

#include "executor/local_blocks.h"

namespace khoro::gpu {

BlockTable::BlockTable(const Image& image, const Blocks& blocks, const Grid& grid)
    : local_(blocks.local) {
  input_ = add(blocks.input);
  output_ = add(blocks.output);
  if (!local_) return;
  LocalBlocks local;
  local.take(image, blocks, grid);
  tiles_of_stage_ = add(local.tiles_of_stage);
  salts_ = add(local.salts);  // last, as they are the narrowest
}

template <class T>
std::size_t BlockTable::add(const std::vector<T>& values) {
  static_assert(std::is_trivially_copyable_v<T>);
  const std::size_t first = bytes_.size();
  const std::span<const std::byte> more = std::as_bytes(std::span(values));
  bytes_.insert(bytes_.end(), more.begin(), more.end());
  return first;
}

void BlockTable::place(Call& call, const std::byte* at) const noexcept {
  if (bytes_.empty()) return;
  call.cuts.input = reinterpret_cast<const Block*>(at + input_);
  call.cuts.output = reinterpret_cast<const Block*>(at + output_);
  if (!local_) return;
  call.tiles_of_stage = reinterpret_cast<const std::uint64_t*>(at + tiles_of_stage_);
  call.salts = reinterpret_cast<const std::uint32_t*>(at + salts_);
}

}  // namespace khoro::gpu
