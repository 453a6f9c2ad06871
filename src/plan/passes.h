// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/program.h"

namespace khoro {

/// The program with the rank's own factor applied to all that it reads of its input.
Program premultiplied(Program program);

}  // namespace khoro
