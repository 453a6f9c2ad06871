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
    case CallKind::split:
      return "split";
    case CallKind::send:
      return "send";
    case CallKind::recv:
      return "recv";
  }
  return "unknown call";
}

namespace {

std::string_view function_of(CallKind kind) noexcept {
  switch (kind) {
    case CallKind::allreduce:
      return "khoroAllReduce";
    case CallKind::broadcast:
      return "khoroBroadcast";
    case CallKind::allgather:
      return "khoroAllGather";
    case CallKind::reducescatter:
      return "khoroReduceScatter";
    case CallKind::barrier:
      return "khoroBarrier";
    case CallKind::split:
      return "khoroCommSplit";
    case CallKind::send:
      return "khoroSend";
    case CallKind::recv:
      return "khoroRecv";
  }
  return "unknown call";
}

std::string_view constant_of(Dtype dtype) noexcept {
  switch (dtype) {
    case Dtype::i32:
      return "khoroInt32";
    case Dtype::i64:
      return "khoroInt64";
    case Dtype::f32:
      return "khoroFloat32";
    case Dtype::f64:
      return "khoroFloat64";
    case Dtype::bf16:
      return "khoroBfloat16";
  }
  return "unknown type";
}

std::string_view constant_of(Reduction reduction) noexcept {
  switch (reduction) {
    case Reduction::sum:
      return "khoroSum";
    case Reduction::max:
      return "khoroMax";
    case Reduction::min:
      return "khoroMin";
    case Reduction::avg:
      return "khoroAvg";
  }
  return "unknown reduction";
}

}  // namespace

std::string describe(const Signature& signature) {
  std::string text(function_of(signature.kind));
  if (signature.kind == CallKind::barrier || signature.kind == CallKind::split) return text + "()";
  text += fmt::format("({} x {}", signature.count, constant_of(signature.dtype));
  if (signature.reduces()) text += fmt::format(", {}", constant_of(signature.reduction));
  if (signature.kind == CallKind::broadcast) text += fmt::format(", root {}", signature.peer);
  if (signature.kind == CallKind::send) text += fmt::format(", to rank {}", signature.peer);
  if (signature.kind == CallKind::recv) text += fmt::format(", from rank {}", signature.peer);
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
