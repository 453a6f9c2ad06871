// SPDX-License-Identifier: Apache-2.0
#include "simulate/sharing.h"

#include "support/catch.h"

using namespace khoro;

TEST_CASE("flows over one link share it, and one that is left has all of it", "[simulate]") {
  Sharing sharing({10.0});
  const std::vector<int> link = {0};
  const std::size_t small = sharing.add(link, 10), large = sharing.add(link, 30);
  CHECK(sharing.until_next_end() == 2.0);
  CHECK(sharing.advance(2.0) == std::vector<std::size_t>{small});
  CHECK(sharing.until_next_end() == 2.0);
  CHECK(sharing.advance(2.0) == std::vector<std::size_t>{large});
}

TEST_CASE("what a flow cannot use for a slow link the others have", "[simulate]") {
  Sharing sharing({10.0, 2.0});
  const std::vector<int> both = {0, 1}, fast = {0};
  const std::size_t slow = sharing.add(both, 2), quick = sharing.add(fast, 8);
  CHECK(sharing.until_next_end() == 1.0);
  CHECK(sharing.advance(1.0) == (std::vector<std::size_t>{slow, quick}));
}

TEST_CASE("time that passes before an end moves all flows on", "[simulate]") {
  Sharing sharing({4.0});
  const std::vector<int> link = {0};
  (void)sharing.add(link, 8);
  CHECK(sharing.advance(0.5).empty());
  CHECK(sharing.until_next_end() == 1.5);
}
