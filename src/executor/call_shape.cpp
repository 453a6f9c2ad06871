// SPDX-License-Identifier: Apache-2.0
#include "executor/call_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>

#include "base/aligned.h"
#include "base/error.h"
#include "executor/execution.h"

namespace khoro {
namespace {

unsigned log2_of(std::size_t bytes) { return static_cast<unsigned>(std::countr_zero(bytes)); }

}  // namespace

CallShape shape_of(const Image& image, const Collective& collective, const CallArguments& call,
                   Partials partials, std::uint64_t message_limit) {
  const std::size_t element = find(call.dtype)->bytes;
  // Where nothing is reduced nothing is carried, and a function knows no type but the dtype.
  const bool carries = collective.reduces() && call.reduction != Reduction::user;
  const std::size_t carry =
      carries ? carry_bytes(carry_type(call.dtype, call.reduction, partials)) : element;
  const auto widest = static_cast<std::uint64_t>(std::max(image.widest_message, 1));
  CallShape shape;
  shape.room = message_limit / (widest * carry);
  if (shape.room == 0)
    throw Error(Code::invalid_argument,
                fmt::format("slots of {} bytes cannot hold a message of {} chunks of {} bytes; "
                            "raise KHORO_SLOT_BYTES",
                            message_limit, widest, carry));
  shape.grid = Grid(
      {collective, image.chunks, call.count, element, shape.room, call.blocks, &image.weights});
  shape.scratch_stride = to_lines(shape.room * carry);
  shape.shift[0] = log2_of(element);
  shape.shift[1] = log2_of(carry);
  if (carries) shape.carry_form = carry_form(call.dtype, call.reduction, partials);
  return shape;
}

BufferBytes BufferBytes::of(const Collective& collective, const CallArguments& call) noexcept {
  const auto bytes = [&](int blocks, const std::vector<Block>* unequal) {
    std::size_t elements = call.count * static_cast<std::size_t>(blocks);
    if (unequal)
      for (const Block& block : *unequal) elements = std::max(elements, block.end());
    return elements * find(call.dtype)->bytes;
  };
  return {bytes(collective.input_blocks(), call.blocks ? &call.blocks->input : nullptr),
          bytes(collective.output_blocks(), call.blocks ? &call.blocks->output : nullptr)};
}

bool BufferBytes::overlap(const CallBuffers& buffers) const noexcept {
  return std::less<>{}(buffers.input, buffers.output + output) &&
         std::less<>{}(buffers.output, buffers.input + input);
}

}  // namespace khoro
