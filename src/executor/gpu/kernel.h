// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/driver.h"

namespace khoro::gpu {

/// The one kernel, for every driver; without code for GPUs where it was built without nvcc. It is
/// given Calls.
const KernelImage& kernel_image() noexcept;

}  // namespace khoro::gpu
