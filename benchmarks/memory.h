// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "buffer.h"
#include "harness.h"

namespace khoro::benchmark {

enum class Form { out_of_place, in_place };

/// What is called, on which inputs.
struct Case {
  Extent sizes;
  Draw draw;
  Place at;
  Form form;
};

/// The memory that the calls of one rank read and write. In place, one buffer holds both.
class Memory {
 public:
  /// Sizes in bytes, of the largest case.
  explicit Memory(const Extent& largest, Kind kind = Kind::of_process, const Gpu& gpu = {});
  /// What that needs.
  static std::size_t bytes(const Extent& largest);

  struct Addresses {
    const std::byte* send;
    std::byte* recv;
  };
  /// Draws the inputs; every other byte is one that inspect() knows again. Throws Failure.
  Addresses prepare(const Case& test);

  /// What it consists of.
  std::array<Buffer*, 2> buffers() noexcept { return {&send_, &recv_}; }

  /// What calls have left on a GPU, for the two below. Throws Failure.
  void fetch(const Case& test);

  /// Flips the last byte where the output of the case belongs, whether or not this rank gets one.
  void flip_byte(const Case& test);

  /// Compares every byte with what it must be after the call: outputs with their origins, inputs
  /// and all the rest with what they were. A stretch of the rest that was written to counts as one
  /// element. Places are counted from the start of the buffer, in place of both sides together.
  Wrong inspect(const Case& test, std::vector<Origin> outputs);

 private:
  Buffer send_;
  Buffer recv_;
};

}  // namespace khoro::benchmark
