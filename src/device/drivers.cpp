// SPDX-License-Identifier: Apache-2.0
#include "device/drivers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "device/cuda/driver.h"

namespace khoro {
namespace {

std::unique_ptr<Driver> open_cuda(const DriverSetup&, std::string& why_not) {
  return open_cuda_driver(why_not);
}

std::unique_ptr<Driver> open_virtual(const DriverSetup& setup, std::string& why_not) {
  if (!setup.virtual_machine.devices.empty()) return make_virtual_driver(setup.virtual_machine);
  why_not = "no virtual GPUs were asked for";
  return nullptr;
}

constexpr std::array<DriverRow, 2> rows = {{{"cuda", &open_cuda}, {"virtual", &open_virtual}}};

}  // namespace

std::span<const DriverRow> drivers() noexcept { return rows; }

std::unique_ptr<Driver> open_driver(std::string_view name, const DriverSetup& setup,
                                    std::string& why_not) {
  const auto row = std::find_if(rows.begin(), rows.end(),
                                [&](const DriverRow& candidate) { return candidate.name == name; });
  if (row == rows.end())
    throw Error(Code::invalid_argument, fmt::format("there is no driver '{}' of GPUs", name));
  return row->open(setup, why_not);
}

}  // namespace khoro
