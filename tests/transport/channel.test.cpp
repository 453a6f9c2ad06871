// SPDX-License-Identifier: Apache-2.0
#include "conformance/channel.h"

#include <string>

#include "base/settings.h"
#include "transport/registry.h"

using namespace khoro;

TEST_CASE("every transport keeps what a channel promises", "[transport]") {
  for (const TransportRow& row : transports()) {
    CAPTURE(row.name);
    conformance::check_channel({.make = row.make});
  }
}

TEST_CASE("a transport is found by its name, and can be asked for", "[transport]") {
  for (const TransportRow& row : transports()) {
    CHECK(find_transport(row.name) == &row);
    CHECK_NOTHROW(Settings().choose("KHORO_TRANSPORT=" + std::string(row.name)));
  }
  CHECK(find_transport("carrier pigeon") == nullptr);
}
