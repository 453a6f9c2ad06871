// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace khoro::test {

/// Says what this thread plays from now on.
void now_playing(const std::string& line);
/// Has this process show, when a fault in it ends it, the case that the thread was playing.
void show_case_at_fault();

}  // namespace khoro::test
