// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "table.h"

namespace khoro::tool {

/// What each launcher has told this process, which of them is believed, and why. Throws `Error` for
/// a bad setting.
void print_launchers(Format format);

}  // namespace khoro::tool
