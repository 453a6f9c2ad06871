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

Extent extent_of(const Signature& signature, int rank, int ranks, std::uint64_t bytes) {
  const auto mine = static_cast<std::uint64_t>(rank) * bytes;
  const auto all = static_cast<std::uint64_t>(ranks) * bytes;
  switch (signature.kind) {
    case CallKind::allgather:
    case CallKind::split:
      return {bytes, all, 0, mine};
    case CallKind::reducescatter:
      return {all, bytes, mine, 0};
    case CallKind::broadcast:
      return {bytes, bytes, 0, 0, rank == signature.peer};
    case CallKind::send:
      return {bytes, 0, 0, 0, true, false};
    case CallKind::recv:
      return {0, bytes, 0, 0, false, true};
    case CallKind::allreduce:
    case CallKind::barrier:
      break;
  }
  return {bytes, bytes};
}

void check_types(const Signature& signature, int rank, int ranks) {
  if (!find(signature.dtype)) refuse(signature, "that is no data type; use one of khoroDataType_t");
  if (signature.reduces() && !find(signature.reduction))
    refuse(signature, "that is no reduction; use one of khoroRedOp_t");
  if (signature.reduces() && !applies(signature.reduction, signature.dtype))
    refuse(signature, fmt::format("{} works on the bits of integers; use an integer type",
                                  find(signature.reduction)->constant));
  const bool has_peer = signature.point_to_point() || signature.kind == CallKind::broadcast;
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
