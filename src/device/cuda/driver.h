// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "device/driver.h"

namespace khoro {

/// The driver of NVIDIA's GPUs, by CUDA's, which is looked for now. Null if this machine or this
/// build has none, and then `why_not` is a sentence that says so. CUDA's own driver is kept for as
/// long as the process lives.
///
/// Works in the primary contexts of devices, which are retained while it lives, and leaves the
/// caller's current context as it is.
std::unique_ptr<Driver> open_cuda_driver(std::string& why_not);

}  // namespace khoro
