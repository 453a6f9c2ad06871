// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "plan/grid.h"
#include "plan/image.h"

namespace khoro {

struct CallArguments;
struct CallBuffers;

/// How a call of a program is cut into tiles and in which types it is carried.
struct CallShape {
  Grid grid;
  unsigned shift[2] = {0, 0};  // log2 of an element's bytes, by form
  Form carry_form = Form::dtype;
  std::uint64_t room = 0;            // elements that fit a chunk of scratch
  std::uint64_t scratch_stride = 0;  // bytes from chunk to chunk
};

/// `message_limit`: bytes of the narrowest slot that the program uses. The grid borrows the image's
/// weights and the call's blocks. Throws invalid_argument if a slot cannot hold one element of each
/// chunk of a message.
CallShape shape_of(const Image& image, const Collective& collective, const CallArguments& call,
                   Partials partials, std::uint64_t message_limit);

/// The buffers of a call in bytes, each from its beginning.
struct BufferBytes {
  std::uint64_t input = 0;
  std::uint64_t output = 0;

  static BufferBytes of(const Collective& collective, const CallArguments& call) noexcept;
  /// Whether some of the one lies on the other.
  bool overlap(const CallBuffers& buffers) const noexcept;
};

}  // namespace khoro
