// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace khoro {

/// What the data path returns instead of throwing.
enum class [[nodiscard]] Status : std::uint8_t{
    ok,
    mismatch,  // a peer's message is of another call
    closed,    // the other end is gone
    corrupt,   // a peer wrote what no correct peer writes
};

}  // namespace khoro
