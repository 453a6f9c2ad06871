// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "transport/transport.h"

namespace khoro {

/// Channels over stream sockets, several to each peer. All ends of a rank are used by one thread at
/// a time. Throws `Error`.
std::unique_ptr<Transport> make_tcp(const TransportSetup& setup);

}  // namespace khoro
