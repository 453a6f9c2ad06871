// SPDX-License-Identifier: Apache-2.0
#include "communicator/channel_table.h"

#include "base/error.h"
#include "support/catch.h"
#include "transport/shm/shm.h"

using namespace khoro;

namespace {

Settings with_limit(std::int64_t bytes) {
  Settings settings;
  settings.buffer_bytes = bytes;
  return settings;
}

}  // namespace

TEST_CASE("few ranks have the slots that were asked for", "[communicator]") {
  const Settings settings;
  for (int ranks = 1; ranks <= 64; ++ranks) {
    CHECK(shape_of(settings, ranks).slots == 8);
    CHECK(shape_of(settings, ranks).slot_bytes == 65'536);
  }
}

TEST_CASE("slots are as narrow as the limit demands, and no narrower", "[communicator]") {
  for (int ranks : {2, 4, 8, 100, 1000})
    for (std::int64_t limit = 1 << 20; limit <= 1 << 28; limit *= 2) {
      const Settings settings = with_limit(limit);
      CAPTURE(ranks, limit);
      ChannelShape shape;
      try {
        shape = shape_of(settings, ranks);
      } catch (const Error& error) {
        CHECK(shm::area_bytes(ranks, 4, {.slots = 8, .slot_bytes = 4096}) >
              static_cast<std::uint64_t>(limit));
        continue;
      }
      const std::uint64_t bytes = channel_bytes(settings, ranks);
      CHECK(bytes <= static_cast<std::uint64_t>(limit));
      CHECK(bytes % 4096 == 0);
      CHECK(bytes >= shm::area_bytes(ranks, 4, shape));  // two lanes, and messages
      if (shape.slot_bytes == 65'536) continue;
      shape.slot_bytes += 4096;
      CHECK(shm::area_bytes(ranks, 4, shape) > static_cast<std::uint64_t>(limit));
    }
}

TEST_CASE("a limit without room for the narrowest slots is refused", "[communicator]") {
  CHECK_THROWS_WITH(shape_of(with_limit(1 << 20), 64),
                    Catch::Contains("KHORO_BUFFER_BYTES=1048576") && Catch::Contains("64 ranks"));
  CHECK_NOTHROW(shape_of(with_limit(65'536), 1));  // one rank has no channels
}
