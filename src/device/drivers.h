// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "device/driver.h"
#include "device/virtual/machine.h"

namespace khoro {

/// What opening a driver may need.
struct DriverSetup {
  VirtualMachine virtual_machine;  // of no device: there are no virtual GPUs
};

/// A driver that this library has.
struct DriverRow {
  std::string_view name;
  /// Null if there is none here, and then `why_not` is a sentence that says why. Throws `Error`
  /// where the setup is wrong.
  std::unique_ptr<Driver> (*open)(const DriverSetup& setup, std::string& why_not);
};

/// All of them.
std::span<const DriverRow> drivers() noexcept;

/// The driver of that name; null, and a sentence, as DriverRow::open has it. Throws
/// invalid_argument if there is no such name.
std::unique_ptr<Driver> open_driver(std::string_view name, const DriverSetup& setup,
                                    std::string& why_not);

}  // namespace khoro
