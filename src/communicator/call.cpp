// SPDX-License-Identifier: Apache-2.0
#include "communicator/call.h"

#include <fmt/format.h>

namespace khoro {

std::string_view name(CallKind kind) noexcept {
  switch (kind) {
    case CallKind::allreduce:
      return "allreduce";
    case CallKind::broadcast:
      return "broadcast";
    case CallKind::allgather:
      return "allgather";
    case CallKind::reducescatter:
      return "reducescatter";
    case CallKind::barrier:
      return "barrier";
    case CallKind::send:
      return "send";
    case CallKind::recv:
      return "recv";
  }
  return "unknown call";
}

std::string describe(const Signature& signature) {
  if (signature.kind == CallKind::barrier) return "barrier";
  const DtypeRow* dtype = find(signature.dtype);
  std::string text = fmt::format("{} of {} x {}", name(signature.kind), signature.count,
                                 dtype ? dtype->name : "unknown type");
  if (signature.reduces()) {
    const ReductionRow* reduction = find(signature.reduction);
    text += fmt::format(", {}", reduction ? reduction->name : "unknown reduction");
  }
  if (signature.kind == CallKind::broadcast || signature.kind == CallKind::recv)
    text += fmt::format(" from rank {}", signature.peer);
  if (signature.kind == CallKind::send) text += fmt::format(" to rank {}", signature.peer);
  return text;
}

std::string title(CallKind kind, std::uint64_t number) {
  return fmt::format("{} #{}", name(kind), number);
}

}  // namespace khoro
