// SPDX-License-Identifier: Apache-2.0
#include "communicator/call.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace khoro {
namespace {

struct Row {
  CallKind kind;
  std::string_view name;
  std::string_view function;
};

constexpr Row rows[] = {
    {CallKind::allreduce, "allreduce", "khoroAllReduce"},
    {CallKind::broadcast, "broadcast", "khoroBroadcast"},
    {CallKind::allgather, "allgather", "khoroAllGather"},
    {CallKind::reducescatter, "reducescatter", "khoroReduceScatter"},
    {CallKind::barrier, "barrier", "khoroBarrier"},
    {CallKind::reduce, "reduce", "khoroReduce"},
    {CallKind::gather, "gather", "khoroGather"},
    {CallKind::scatter, "scatter", "khoroScatter"},
    {CallKind::alltoall, "alltoall", "khoroAlltoAll"},
    {CallKind::split, "split", "khoroCommSplit"},
    {CallKind::send, "send", "khoroSend"},
    {CallKind::recv, "recv", "khoroRecv"},
};
static_assert(std::size(rows) == call_kinds);

const Row& row_of(CallKind kind) noexcept {
  static constexpr Row unknown{{}, "unknown call", "unknown call"};
  const auto row = std::find_if(std::begin(rows), std::end(rows),
                                [&](const Row& each) { return each.kind == kind; });
  return row == std::end(rows) ? unknown : *row;
}

}  // namespace

std::string_view name(CallKind kind) noexcept { return row_of(kind).name; }

std::string describe(const Signature& signature) {
  std::string text(row_of(signature.kind).function);
  if (signature.kind == CallKind::barrier || signature.kind == CallKind::split) return text + "()";
  const DtypeRow* dtype = find(signature.dtype);
  text += fmt::format("({} x {}", signature.count, dtype ? dtype->constant : "unknown type");
  if (signature.kind == CallKind::send) return text + fmt::format(", to rank {})", signature.peer);
  if (signature.kind == CallKind::recv)
    return text + fmt::format(", from rank {})", signature.peer);
  const Collective collective = signature.collective(1);
  if (collective.reduces()) {
    const ReductionRow* reduction = find(signature.reduction);
    text += fmt::format(", {}", reduction ? reduction->constant : "unknown reduction");
  }
  if (collective.has_root()) text += fmt::format(", root {}", signature.peer);
  return text + ")";
}

std::string title(CallKind kind, std::uint64_t number) {
  return fmt::format("{} #{}", name(kind), number);
}

std::string title(const Signature& signature, std::uint64_t number) {
  std::string text = title(signature.kind, number);
  if (signature.kind == CallKind::send) text += fmt::format(" to rank {}", signature.peer);
  if (signature.kind == CallKind::recv) text += fmt::format(" from rank {}", signature.peer);
  return text;
}

}  // namespace khoro
