// SPDX-License-Identifier: Apache-2.0
#include "base/interrupt.h"

#include "rendezvous/host.h"
#include "support/catch.h"

using namespace khoro;

TEST_CASE("a joiner that is called back leaves at once, and the others are told who it was",
          "[rendezvous]") {
  UniqueId id = UniqueId::draw();
  Host host(id);
  Interrupt interrupt;
  auto others = std::async(std::launch::async, [&] {
    return outcome_of([&] { join(id, guest(0, 3), in_seconds(50)); });
  });
  auto joiner = std::async(std::launch::async, [&] {
    return outcome_of([&] { join(id, guest(1, 3), {in_seconds(50), &interrupt}); });
  });
  CHECK(host.sees(2));
  Time start = machine().now();
  interrupt.raise();
  CHECK(joiner.get().code == Code::aborted);
  Outcome other = others.get();
  CHECK(other.code == Code::aborted);
  CHECK_THAT(other.text, Catch::Contains("rank 1: it was aborted"));
  CHECK(machine().now() - start < std::chrono::seconds(10));
}

TEST_CASE("a joiner whose host has not come yet can be called back too", "[rendezvous]") {
  UniqueId id = UniqueId::draw();
  id.host_may_be_late = true;
  Interrupt interrupt;
  auto joiner = std::async(std::launch::async, [&] {
    return outcome_of([&] { join(id, guest(1, 3), {in_seconds(50), &interrupt}); });
  });
  CHECK(joiner.wait_for(std::chrono::milliseconds(100)) == std::future_status::timeout);
  Time start = machine().now();
  interrupt.raise();
  CHECK(joiner.get().code == Code::aborted);
  CHECK(machine().now() - start < std::chrono::seconds(10));
}
