// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "device/driver.h"

namespace khoro {

/// The driver of that name, "cuda" or "virtual", as this process has it: opened when it is first
/// asked for, and closed with its last owner. Throws invalid_usage where there is none, and says
/// why; else as open_driver(). Thread-safe.
std::shared_ptr<Driver> gpus_of_process(std::string_view name);

}  // namespace khoro
