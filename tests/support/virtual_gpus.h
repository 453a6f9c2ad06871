// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "device/virtual/machine.h"

namespace khoro::test {

/// GPUs that all reach each other.
inline VirtualMachine virtual_gpus(std::size_t count) {
  VirtualMachine machine;
  for (std::size_t i = 0; i < count; ++i) {
    DeviceFacts facts;
    facts.name = "virtual GPU " + std::to_string(i);
    facts.bus_id = "0000:0" + std::to_string(i) + ":00.0";
    facts.memory_bytes = 64 << 20;
    facts.multiprocessors = 8;
    machine.devices.push_back(facts);
  }
  machine.reach.assign(count, std::vector<bool>(count, true));
  return machine;
}

}  // namespace khoro::test
