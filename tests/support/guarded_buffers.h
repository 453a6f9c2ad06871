// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "support/case.h"

namespace khoro::test {

/// The two buffers of one rank's call, or the one that they are in place, with guard bytes before,
/// between and behind. What is not input holds guard bytes too. Made once and laid out anew for
/// each call.
class GuardedBuffers {
 public:
  /// The input holds `input`, and is where in place puts it.
  void lay_out(const Case& what, int rank, std::span<const std::byte> input) {
    const Collective collective = what.collective();
    const Blocks blocks = what.blocks(rank);
    const std::size_t element = what.element();
    const std::size_t in_bytes = end_of(blocks.input) * element;
    const std::size_t out_bytes = end_of(blocks.output) * element;
    memory_.assign(4 * (guard + boundary) + in_bytes + out_bytes, guard_byte);
    out_ = next_boundary(guard) + what.alignment.output(element);
    in_ = next_boundary(out_ + out_bytes + guard) + what.alignment.input(element);
    if (what.in_place) {
      const std::size_t in_own = own(collective, blocks.input, rank) * element;
      const std::size_t out_own = own(collective, blocks.output, rank) * element;
      in_ = out_;
      if (out_own > in_own) in_ += out_own - in_own;
      if (in_own > out_own) out_ += in_own - out_own;
    }
    std::copy(input.begin(), input.end(), at(in_));
    before_.assign(memory_.begin(), memory_.end());
    written_.clear();
    if (!collective.has_output(rank)) return;
    for (const Block& block : blocks.output)
      if (block.count > 0)
        written_.push_back({out_ + block.first * element, block.count * element});
    std::sort(written_.begin(), written_.end(),
              [](const Range& a, const Range& b) { return a.first < b.first; });
  }

  std::span<std::byte> all() { return memory_; }
  const std::byte* input() { return at(in_); }
  std::byte* output() { return at(out_); }

  /// Nothing but the output has changed; and of a rank that gets nothing, nothing at all.
  bool rest_intact() const {
    std::size_t from = 0;
    for (const Range& range : written_) {
      if (!same(from, range.first)) return false;
      from = range.first + range.bytes;
    }
    return same(from, memory_.size());
  }

 private:
  static constexpr std::size_t guard = 128;
  static constexpr std::size_t boundary = 64;
  static constexpr auto guard_byte = std::byte{0xa5};

  struct Range {
    std::size_t first = 0;
    std::size_t bytes = 0;
  };

  static std::size_t end_of(const std::vector<Block>& blocks) {
    std::size_t end = 0;
    for (const Block& block : blocks) end = std::max(end, block.end());
    return end;
  }
  /// Where what the rank gives, or gets, begins that is the same memory in place.
  static std::size_t own(const Collective& collective, const std::vector<Block>& blocks, int rank) {
    if (collective.kind == CollectiveKind::alltoall) return 0;
    return blocks[blocks.size() > 1 ? static_cast<std::size_t>(rank) : 0].first;
  }

  bool same(std::size_t first, std::size_t last) const {
    return std::memcmp(memory_.data() + first, before_.data() + first, last - first) == 0;
  }
  std::byte* at(std::size_t offset) { return memory_.data() + offset; }
  /// The least offset from `offset` on whose address is aligned.
  std::size_t next_boundary(std::size_t offset) const {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data() + offset);
    return offset + (boundary - address % boundary) % boundary;
  }

  std::vector<std::byte> memory_, before_;
  std::vector<Range> written_;
  std::size_t in_ = 0, out_ = 0;
};

}  // namespace khoro::test
