// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "transport/transport.h"

namespace khoro::shm {

#ifdef KHORO_TEST_SWITCHES
/// The same transport, or, while a race is planted (see publish_early()), one whose senders publish
/// too early.
std::unique_ptr<Transport> with_planted_race(std::unique_ptr<Transport> made);
#endif

}  // namespace khoro::shm
