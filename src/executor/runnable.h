// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "plan/collective.h"
#include "plan/image.h"

namespace khoro {

/// Throws invalid_argument if the program could touch memory outside the buffers of a call or is no
/// sequence of steps. This is what the interpreter relies on; whether the program is right is for
/// verify() to say.
void check_runnable(const Image& image, const Collective& collective);

/// What steps need room for while they run.
struct StepRoom {
  std::uint32_t sources = 0;
  std::uint32_t sinks = 0;
};
/// That of the widest step of a lane.
StepRoom room_of(const Image& image, Image::Range lane) noexcept;

}  // namespace khoro
