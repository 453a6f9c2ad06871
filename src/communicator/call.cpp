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
    {CallKind::allgatherv, "allgatherv", "khoroAllGatherV"},
    {CallKind::reducescatterv, "reducescatterv", "khoroReduceScatterV"},
    {CallKind::gatherv, "gatherv", "khoroGatherV"},
    {CallKind::scatterv, "scatterv", "khoroScatterV"},
    {CallKind::alltoallv, "alltoallv", "khoroAlltoAllV"},
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

std::string describe(const Signature& signature, std::uint32_t tag) {
  std::string text(row_of(signature.kind).function);
  if (tag != 0) text += "Tag";
  if (signature.kind == CallKind::barrier || signature.kind == CallKind::split) return text + "()";
  const DtypeRow* dtype = find(signature.dtype);
  const std::string_view type = dtype ? dtype->constant : "unknown type";
  text += signature.has_local_blocks() ? fmt::format("({}", type)
                                       : fmt::format("({} x {}", signature.count, type);
  if (signature.point_to_point()) {
    text += fmt::format(", {} rank {}", signature.kind == CallKind::send ? "to" : "from",
                        signature.peer);
    return text + (tag != 0 ? fmt::format(", tag {})", tag) : ")");
  }
  const Collective collective = signature.collective(1);
  if (collective.reduces()) {
    const ReductionRow* reduction = find(signature.reduction);
    text += fmt::format(", {}", reduction ? reduction->constant : "unknown reduction");
  }
  if (collective.has_root()) text += fmt::format(", root {}", signature.peer);
  if (collective.unequal && !signature.has_local_blocks())
    text += fmt::format(", counts {:08x}", signature.peer);
  return text + ")";
}

std::string title(CallKind kind, std::uint64_t number, std::uint32_t tag) {
  std::string text = fmt::format("{} #{}", name(kind), number);
  return tag != 0 ? text + fmt::format(" with tag {}", tag) : text;
}

std::string title(const Signature& signature, std::uint64_t number, std::uint32_t tag) {
  std::string text = title(signature.kind, number);
  if (signature.kind == CallKind::send) text += fmt::format(" to rank {}", signature.peer);
  if (signature.kind == CallKind::recv) text += fmt::format(" from rank {}", signature.peer);
  return tag != 0 ? text + fmt::format(" with tag {}", tag) : text;
}

}  // namespace khoro
