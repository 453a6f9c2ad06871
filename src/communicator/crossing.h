// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "communicator/communicator.h"

namespace khoro {

/// Two communicators that are used in crossed order: while `waiting` waits in `call` for a rank,
/// that rank's process waits in another communicator of this process for this one. In words, both
/// communicators named; empty if that is not so. Threads whose calls tell that they serve different
/// communicators do not cross; of others another one might still make the call.
std::string crossing(const Communicator& waiting, const CallRecord& call, int waited_for);

}  // namespace khoro
