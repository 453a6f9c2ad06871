// SPDX-License-Identifier: Apache-2.0
#include "communicator/form.h"

#include <signal.h>
#include <sys/resource.h>

#include <array>
#include <cstring>

#include "base/packet_socket.h"
#include "support/catch.h"

using namespace khoro;

namespace {

/// No file, and so no shared memory, can be made meanwhile: a rank has nothing to show.
class NoMemory {
 public:
  NoMemory() {
    handler_ = ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit none{0, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &none);
  }
  ~NoMemory() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;

 private:
  rlimit before_{};
  sighandler_t handler_ = nullptr;
};

}  // namespace

TEST_CASE("a rank that cannot show its memory leaves no meeting open", "[communicator]") {
  std::array<char, 128> id{};
  const Exchange alone = [&](const void* mine, void* all, std::size_t bytes) {
    std::memcpy(all, mine, bytes);
    // What it would serve comes last in what it offers.
    if (id == decltype(id){})
      std::memcpy(id.data(), static_cast<const char*>(mine) + bytes - id.size(), id.size());
  };
  {
    const NoMemory none;
    CHECK_THROWS_WITH(form(alone, {1, 0, 0, 0}, ""), Catch::Contains("cannot make shared memory"));
  }
  CHECK_FALSE(connect_to(UniqueId::decode(id).socket));
}
