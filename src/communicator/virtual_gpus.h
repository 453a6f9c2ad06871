// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/settings.h"
#include "device/virtual/machine.h"
#include "topology/topology.h"

namespace khoro {

/// So many virtual GPUs as the settings ask for, those of the machine that they name; none if they
/// ask for none. Throws invalid_argument for a file that is no machine with GPUs, in its words.
VirtualMachine virtual_machine_of(const Settings& settings);

/// The first `count` GPUs of a topology, or as many as there are.
VirtualMachine virtual_machine_of(const Topology& topology, int count);

}  // namespace khoro
