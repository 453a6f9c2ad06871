// SPDX-License-Identifier: Apache-2.0
// What is refused before a call begins.
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/error.h"
#include "communicator/communicator.h"

namespace khoro {
namespace {

[[noreturn]] void refuse(const Signature& signature, const std::string& why) {
  throw Error(Code::invalid_argument, fmt::format("{}: {}", describe(signature), why));
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

void check_types(const Signature& signature, int rank, int ranks) {
  if (!find(signature.dtype)) refuse(signature, "that is no data type; use one of khoroDataType_t");
  if (!signature.point_to_point() && signature.collective(ranks).reduces() &&
      !find(signature.reduction))
    refuse(signature, "that is no reduction; use one of khoroRedOp_t");
  const bool has_peer = signature.point_to_point() || signature.collective(ranks).has_root();
  if (has_peer && (signature.peer < 0 || signature.peer >= ranks))
    refuse(signature, fmt::format("there is no rank {}; rank {} is one of {} ranks, 0 to {}",
                                  signature.peer, rank, ranks, ranks - 1));
}

}  // namespace

void Communicator::check_new(const Call& call) {
  const Signature& signature = call.signature;
  Extent extent{0, 0, 0, 0, false, false};
  try {
    if (signature.kind != CallKind::barrier) check_types(signature, rank(), ranks());
    if (signature.kind != CallKind::barrier && signature.count > 0) {
      const std::uint64_t element = find(signature.dtype)->bytes;
      // The most that any buffer of any rank holds, and no object is longer than this.
      constexpr std::uint64_t limit = std::numeric_limits<std::ptrdiff_t>::max();
      if (signature.count > limit / element / static_cast<std::uint64_t>(ranks()))
        refuse(signature, fmt::format("{} elements are more than memory can hold; the count is in "
                                      "elements, not bytes",
                                      signature.count));
      extent = extent_of(signature, rank(), ranks(), signature.count * element);
    }
  } catch (...) {
    page_->refuse(signature);
    throw;
  }
  checked_ = {signature, extent, true};
  check_buffers(call);
}

void Communicator::refuse_buffers(const Call& call) {
  const Signature& signature = call.signature;
  const Extent& extent = checked_.extent;
  page_->refuse(signature);
  if (extent.reads && !call.buffers.input)
    refuse(signature, "the send buffer is NULL; pass the memory to read, or count 0");
  if (extent.writes && !call.buffers.output)
    refuse(signature, "the receive buffer is NULL; pass the memory to write, or count 0");
  refuse(signature,
         "the send and the receive buffer overlap; keep them apart, or make the call in place as "
         "khoro.h says");
}

}  // namespace khoro
