// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "khoro/khoro.h"

namespace khoro {

/// What a caller chose for one communicator, checked and copied.
struct Chosen {
  bool blocking = true;
  std::string settings;  // as Settings::choose() takes them
};

/// NULL chooses nothing. Throws invalid_argument, naming the field, its value and what is legal.
Chosen chosen_by(const khoroConfig_t* config);

}  // namespace khoro
