// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/unique_id.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "base/descriptor.h"
#include "base/error.h"
#include "support/catch.h"

using namespace khoro;

namespace {

std::string hex(const Digest& digest) {
  std::string text;
  for (std::uint8_t byte : digest) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

}  // namespace

TEST_CASE("hmac gives the digests of RFC 4231", "[rendezvous]") {
  std::vector<std::uint8_t> key(20, 0x0b), long_key(131, 0xaa);
  CHECK(hex(hmac(key, {bytes_of("Hi There")})) ==
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  CHECK(hex(hmac(bytes_of("Jefe"), {bytes_of("what do ya want "), bytes_of("for nothing?")})) ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  CHECK(hex(hmac(long_key, {bytes_of("Test Using Larger Than Block-Size Key - Hash Key First")})) ==
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST_CASE("an id survives its 128 bytes, and no other id equals it", "[rendezvous]") {
  UniqueId id = UniqueId::draw(), other = UniqueId::draw();
  UniqueId read = UniqueId::decode(id.encode());
  CHECK(read.key == id.key);
  CHECK(read.communicator == id.communicator);
  CHECK(read.socket == id.socket);
  CHECK(read.host_may_be_late == id.host_may_be_late);
  CHECK(read.fingerprint() == id.fingerprint());
  CHECK(other.key != id.key);
  CHECK(other.communicator != id.communicator);
  CHECK(other.socket != id.socket);
  CHECK(other.fingerprint() != id.fingerprint());
}

TEST_CASE("an id with any byte changed is refused", "[rendezvous]") {
  auto bytes = UniqueId::draw().encode();
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    auto changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 0x40);
    INFO(i);
    CHECK_THROWS_AS(UniqueId::decode(changed), Error);
  }
  CHECK_THROWS_AS(UniqueId::decode({}), Error);
}

TEST_CASE("an id of another version says both versions", "[rendezvous]") {
  auto bytes = UniqueId::draw().encode();
  bytes[0] = 7;
  CHECK_THROWS_WITH(UniqueId::decode(bytes),
                    Catch::Contains("version 7") && Catch::Contains("reads version 1"));
}

TEST_CASE("the ids of a job are the same for who holds its key, and differ by ordinal",
          "[rendezvous]") {
  Key key{1, 2, 3}, other{1, 2, 4};
  UniqueId id = UniqueId::of_job(key, 0);
  CHECK(UniqueId::of_job(key, 0).encode() == id.encode());
  CHECK(id.host_may_be_late);
  CHECK(UniqueId::of_job(key, 1).socket != id.socket);
  CHECK(UniqueId::of_job(key, 1).key != id.key);
  CHECK(UniqueId::of_job(other, 0).socket != id.socket);
}

TEST_CASE("an id's fingerprint and socket give nothing of the key away", "[rendezvous]") {
  UniqueId id = UniqueId::draw();
  auto has = [&](const std::string& text) {
    auto bytes = id.encode();
    return std::search(bytes.begin(), bytes.end(), text.begin(), text.end()) != bytes.end();
  };
  CHECK_FALSE(has(id.fingerprint()));
  CHECK(id.fingerprint().size() == 8);
}

TEST_CASE("a launcher's key comes through a sealed descriptor, as often as it is read",
          "[rendezvous]") {
  Key key;
  key.fill(42);
  Descriptor descriptor(make_job_key_descriptor(key));
  CHECK(read_job_key(descriptor.number()) == key);
  CHECK(read_job_key(descriptor.number()) == key);
  CHECK(::write(descriptor.number(), "x", 1) == -1);
  CHECK(::ftruncate(descriptor.number(), 0) == -1);
  CHECK((::fcntl(descriptor.number(), F_GETFD) & FD_CLOEXEC) == 0);
  CHECK_THROWS_WITH(read_job_key(-1), Catch::Contains("KHORO_KEY_FD is -1"));
  Descriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  CHECK_THROWS_WITH(read_job_key(nothing.number()), Catch::Contains("holds no key"));
}
