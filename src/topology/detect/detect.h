// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "topology/detect/files.h"
#include "topology/reading.h"

namespace khoro {

/// This machine, before normalise(): what its kernel tells of CPUs, PCIe and NICs, and NVML of GPUs
/// where it is installed. What may not be read is left out, with one warning for all of it. A
/// topology is always present: in the worst case one CPU of which nothing is known.
Reading detect_machine();

/// A machine as the files of its /sys and /proc tell it; GPUs as PCI shows them, without links of
/// their own.
Reading detect_from(const Files& files);

}  // namespace khoro
