// SPDX-License-Identifier: Apache-2.0
#include "executor/gpu/kernel.h"

#include <array>

#include "device/control_word.h"
#include "device/virtual/block.h"
#include "executor/gpu/run_lane.h"

#ifdef KHORO_KERNEL_CODE
// Defined where the machine code is embedded.
extern "C" const std::byte kernel_code_begin[];
extern "C" const std::byte kernel_code_end[];
#endif

namespace khoro::gpu {
namespace {

void run_on_virtual(const void* arguments, VirtualBlock& block) {
  const DefaultControlWord standard;  // as kernels of GPUs have it
  run_block(block, *static_cast<const Calls*>(arguments), block.block(), block.shared());
}

constexpr std::array functions{KernelImage::Entry{kernel_name, run_on_virtual}};

}  // namespace

const KernelImage& kernel_image() noexcept {
#ifdef KHORO_KERNEL_CODE
  static const KernelImage image{{kernel_code_begin, kernel_code_end}, functions};
#else
  static const KernelImage image{{}, functions};
#endif
  return image;
}

}  // namespace khoro::gpu
