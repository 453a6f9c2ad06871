// SPDX-License-Identifier: Apache-2.0
#include "base/random.h"

#include <sys/random.h>

#include <array>
#include <bit>
#include <cerrno>

#include "base/error.h"

namespace khoro {

void draw_random(std::span<std::uint8_t> bytes) {
  while (!bytes.empty()) {
    ssize_t drawn = ::getrandom(bytes.data(), bytes.size(), 0);
    if (drawn < 0 && errno == EINTR) continue;
    if (drawn <= 0) throw_errno("the system's random source gives nothing");
    bytes = bytes.subspan(static_cast<std::size_t>(drawn));
  }
}

std::uint64_t draw_random() {
  std::array<std::uint8_t, 8> bytes;
  draw_random(bytes);
  return std::bit_cast<std::uint64_t>(bytes);
}

}  // namespace khoro
