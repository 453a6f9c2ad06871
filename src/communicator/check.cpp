// SPDX-License-Identifier: Apache-2.0
// What is refused before a call begins.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/error.h"
#include "communicator/communicator.h"

namespace khoro {
namespace {

[[noreturn]] void refuse(const Signature& signature, const std::string& why,
                         std::uint32_t tag = 0) {
  throw Error(Code::invalid_argument, fmt::format("{}: {}", describe(signature, tag), why));
}

/// `bytes` are those of the count.
Extent extent_of(const Signature& signature, int rank, int ranks, std::uint64_t bytes) {
  if (signature.kind == CallKind::send) return {bytes, 0, 0, 0, true, false};
  if (signature.kind == CallKind::recv) return {0, bytes, 0, 0, false, true};
  const Collective collective = signature.collective(ranks);
  const auto own_block = static_cast<std::uint64_t>(rank) * bytes;
  Extent extent;
  extent.input = bytes * static_cast<std::uint64_t>(collective.input_blocks());
  extent.output = bytes * static_cast<std::uint64_t>(collective.output_blocks());
  if (collective.input_blocks() > collective.output_blocks()) extent.input_at = own_block;
  if (collective.output_blocks() > collective.input_blocks()) extent.output_at = own_block;
  extent.reads = collective.has_input(rank);
  extent.writes = collective.has_output(rank);
  return extent;
}

/// No object is longer than this.
constexpr std::uint64_t most_bytes = std::numeric_limits<std::ptrdiff_t>::max();

struct Whole {
  std::uint64_t elements = 0;
  std::uint64_t end = 0;
};

/// What blocks come to; refuses those that no memory can hold.
Whole whole_of(const Signature& signature, const std::vector<Block>& blocks) {
  const std::uint64_t most = most_bytes / find(signature.dtype)->bytes;
  Whole whole;
  for (const Block& block : blocks) {
    if (block.count > most || block.first > most - block.count ||
        whole.elements > most - block.count)
      refuse(signature, fmt::format("{} elements from element {} on are more than memory can hold; "
                                    "counts and displacements are in elements, not bytes",
                                    block.count, block.first));
    whole.elements += block.count;
    whole.end = std::max<std::uint64_t>(whole.end, block.end());
  }
  return whole;
}

void check_apart(const Signature& signature, std::vector<Block> blocks) {
  std::sort(blocks.begin(), blocks.end(),
            [](const Block& a, const Block& b) { return a.first < b.first; });
  std::size_t end = 0;
  for (const Block& block : blocks) {
    if (block.count > 0 && block.first < end)
      refuse(signature, fmt::format("two received blocks overlap at element {}; keep what comes "
                                    "from different ranks apart",
                                    block.first));
    if (block.count > 0) end = block.end();
  }
}

Extent extent_of_blocks(const Call& call, int rank, int ranks) {
  const Signature& signature = call.signature;
  const Collective collective = signature.collective(ranks);
  const std::vector<Block>& input = call.blocks->input;
  const std::vector<Block>& output = call.blocks->output;
  const bool gives = collective.has_input(rank), gets = collective.has_output(rank);
  if ((gives && input.empty()) || (gets && output.empty()))
    refuse(signature, "counts or displacements are NULL; pass one of each for every rank");
  const Whole in = whole_of(signature, input), out = whole_of(signature, output);
  check_apart(signature, output);
  const std::uint64_t element = find(signature.dtype)->bytes;
  Extent extent{in.end * element,         out.end * element,       0, 0,
                gives && in.elements > 0, gets && out.elements > 0};
  if (!gives || !gets) return extent;

  const Block &given = block_of(input, rank), &taken = block_of(output, rank);
  if (given.count != taken.count)
    refuse(signature, fmt::format("rank {} gives itself {} elements and takes {}; name the same "
                                  "count at both",
                                  rank, given.count, taken.count));
  if (collective.kind != CollectiveKind::alltoall) {
    extent.input_at = given.first * element;
    extent.output_at = taken.first * element;
  } else if (call.buffers.input == call.buffers.output && input != output) {
    refuse(signature, "in place needs the same counts and displacements both ways");
  }
  return extent;
}

/// A reduction that was made came with the call, and is used as it was made.
void check_reduction(const Call& call) {
  const Signature& signature = call.signature;
  const bool made =
      signature.reduction == Reduction::premul || signature.reduction == Reduction::user;
  if (!find(signature.reduction) || made != (call.own != nullptr))
    refuse(signature,
           "that is no reduction; use one of khoroRedOp_t, or one that was made for this "
           "communicator and is not destroyed");
  if (!applies(signature.reduction, signature.dtype))
    refuse(signature, fmt::format("{} works on the bits of integers; use an integer type",
                                  find(signature.reduction)->constant));
  if (signature.reduction == Reduction::premul && call.own->dtype != signature.dtype)
    refuse(signature, fmt::format("the factor of the reduction is of type {}; use it for that type "
                                  "alone",
                                  find(call.own->dtype)->constant));
}

void check_types(const Call& call, int rank, int ranks) {
  const Signature& signature = call.signature;
  if (!find(signature.dtype))
    refuse(signature, "that is no data type; use one of khoroDataType_t", call.tag);
  if (!signature.point_to_point() && signature.collective(ranks).reduces()) check_reduction(call);
  const bool has_peer = signature.point_to_point() || signature.collective(ranks).has_root();
  if (has_peer && (signature.peer < 0 || signature.peer >= ranks))
    refuse(signature,
           fmt::format("there is no rank {}; rank {} is one of {} ranks, 0 to {}", signature.peer,
                       rank, ranks, ranks - 1),
           call.tag);
}

}  // namespace

void Communicator::check_new(Call& call) {
  const Signature& signature = call.signature;
  Extent extent{0, 0, 0, 0, false, false};
  try {
    if (signature.kind != CallKind::barrier) check_types(call, rank(), ranks());
    if (call.blocks) {
      extent = extent_of_blocks(call, rank(), ranks());
    } else if (signature.kind != CallKind::barrier && signature.count > 0) {
      const std::uint64_t element = find(signature.dtype)->bytes;
      // By what the longest buffer of any rank holds.
      if (signature.count > most_bytes / element / static_cast<std::uint64_t>(ranks()))
        refuse(signature,
               fmt::format("{} elements are more than memory can hold; the count is in elements, "
                           "not bytes",
                           signature.count),
               call.tag);
      extent = extent_of(signature, rank(), ranks(), signature.count * element);
    }
    if (call.blocks || call.own) plans_.check(signature, call.own);
    if (on_gpu(call)) check_on_gpu(call);
  } catch (...) {
    page_->refuse(signature, call.tag);
    throw;
  }
  // The next call with this signature may have other blocks, or a reduction made otherwise.
  checked_ = {signature, extent, !call.blocks && !call.own};
  check_buffers(call);
}

void Communicator::refuse_buffers(const Call& call) {
  const Signature& signature = call.signature;
  const Extent& extent = checked_.extent;
  page_->refuse(signature, call.tag);
  if (extent.reads && !call.buffers.input)
    refuse(signature, "the send buffer is NULL; pass the memory to read, or count 0", call.tag);
  if (extent.writes && !call.buffers.output)
    refuse(signature, "the receive buffer is NULL; pass the memory to write, or count 0", call.tag);
  refuse(signature,
         "the send and the receive buffer overlap; keep them apart, or make the call in place as "
         "khoro.h says");
}

}  // namespace khoro
