// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/driver.h"

namespace khoro {

std::unique_ptr<Driver> open_cuda_driver(std::string& why_not) {
  why_not = "this build is without CUDA: its toolkit was not there, or not wanted";
  return nullptr;
}

}  // namespace khoro
