// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "executor/call_shape.h"
#include "executor/execution.h"
#include "executor/gpu/call.h"
#include "plan/image.h"

namespace khoro::gpu {

/// A rank's program as its device has it: one piece of memory with all that kernels read of it, and
/// what they keep of it from call to call. A value; the image outlives it.
class ProgramLayout {
 public:
  /// Throws `Error` for a program that cannot be run.
  ProgramLayout(const Image& image, const Collective& collective, std::uint32_t strands = 1);

  std::uint64_t bytes() const noexcept { return bytes_; }
  /// Of a block that runs a lane of it.
  std::uint32_t block_bytes() const noexcept;
  /// Fills `memory`, a copy of what is to lie at `at` as kernels see it, at a multiple of 128. No
  /// strand has ends yet.
  Program write(std::span<std::byte> memory, std::byte* at) const;
  /// Where a strand's ends go, of the image's ports, as kernels find them: an End* for each.
  std::uint64_t ends_of(std::uint32_t strand) const noexcept;
  /// Where the sums of the image's weights lie; null where chunks are alike.
  const std::uint32_t* weights(std::byte* at) const noexcept;

 private:
  template <class T>
  std::uint64_t reserve(std::size_t count);
  std::size_t windows_of_strand() const noexcept;

  const Image& image_;
  const Collective collective_;
  const std::uint32_t strand_count_;
  const bool offers_;                      // windows
  std::uint32_t sources_ = 0, sinks_ = 0;  // of the widest step
  std::uint64_t bytes_ = 0;
  // Offsets.
  std::uint64_t stages_, port_of_stage_, lanes_, weights_, strands_;
  std::uint64_t ends_, tokens_, held_, windows_;  // of all strands
};

/// Where a call's memory is for kernels of its device.
struct CallMemory {
  std::byte* input = nullptr;
  std::byte* output = nullptr;
  std::byte* scratch = nullptr;
  std::uint64_t scratch_of_strand = 0;  // bytes
  Direct direct;
  const std::uint32_t* weights = nullptr;
  std::uint32_t* stop = nullptr;
  Report* report = nullptr;
};

/// A call of a program. `arguments.buffers` are not looked at, and the factor of Reduction::premul
/// is copied. Where the kernel finds unequal blocks is for BlockTable::place() to say.
Call make_call(const Program& program, const CallShape& shape, const CallArguments& arguments,
               Partials partials, const CallMemory& memory) noexcept;

}  // namespace khoro::gpu
