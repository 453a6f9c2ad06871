// SPDX-License-Identifier: Apache-2.0
#include "base/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "base/error.h"
#include "support/catch.h"

using namespace khoro;
using Catch::Contains;

namespace {
constexpr std::uint64_t page = 4096;

}  // namespace

TEST_CASE("shared memory is sealed, zeroed and costs only the pages touched", "[base]") {
  const std::uint64_t bytes = std::uint64_t{1} << 32;
  const Descriptor memory = make_shared_memory("khoro test", bytes);
  CHECK(::ftruncate(memory.number(), page) != 0);
  CHECK(::ftruncate(memory.number(), 2 * bytes) != 0);

  const Mapping mapping = Mapping::open(memory.number(), bytes, "arena");
  CHECK(mapping.bytes().size() == bytes);
  CHECK(resident_bytes(mapping.bytes()) == 0);
  CHECK(mapping.bytes()[bytes - 1] == std::byte{0});  // reading maps the page of zeroes
  mapping.bytes()[0] = std::byte{1};
  mapping.bytes()[5 * page] = std::byte{1};
  mapping.bytes()[6 * page] = std::byte{1};
  CHECK(resident_bytes(mapping.bytes().first(7 * page)) == 3 * page);
  CHECK(resident_bytes(mapping.bytes().subspan(page, 5 * page)) == page);
  CHECK(resident_bytes(mapping.bytes()) == 4 * page);
}

TEST_CASE("all mappings of one memory in a process are one", "[base]") {
  Descriptor memory = make_shared_memory("khoro test", page);
  const Descriptor twin(::dup(memory.number()));
  const Descriptor stranger = make_shared_memory("khoro test", page);
  Mapping first = Mapping::open(memory.number(), page, "arena");
  const Mapping second = Mapping::open(twin.number(), page, "arena");
  const Mapping other = Mapping::open(stranger.number(), page, "arena");
  CHECK(first.bytes().data() == second.bytes().data());
  CHECK(first.bytes().data() != other.bytes().data());

  first.bytes()[0] = std::byte{7};
  first = Mapping();
  memory = Descriptor();
  CHECK(second.bytes()[0] == std::byte{7});
}

TEST_CASE("memory that could fail under its users is refused", "[base]") {
  const auto refusal = [](int descriptor, std::uint64_t bytes) {
    try {
      Mapping::open(descriptor, bytes, "arena of rank 3");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const Descriptor memory = make_shared_memory("khoro test", page);
  CHECK_THAT(refusal(memory.number(), page + 1),
             Contains("arena of rank 3: has 4096 bytes, needs 4097"));
  CHECK_THAT(refusal(-1, page), Contains("arena of rank 3: cannot look"));

  const Descriptor soft(::memfd_create("khoro test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  REQUIRE(::ftruncate(soft.number(), page) == 0);
  CHECK_THAT(refusal(soft.number(), page), Contains("not sealed"));

  const Descriptor file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  CHECK_THAT(refusal(file.number(), page), Contains("not an ordinary memfd"));

  const Descriptor empty = make_shared_memory("khoro test", 0);
  CHECK_THAT(refusal(empty.number(), 0), Contains("has 0 bytes"));
}
