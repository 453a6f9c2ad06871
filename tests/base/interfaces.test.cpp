// SPDX-License-Identifier: Apache-2.0
#include "base/interfaces.h"

#include <algorithm>

#include "base/error.h"
#include "support/catch.h"

using namespace khoro;

namespace {

Interface interface(const char* name, SocketAddress::Family family, bool loopback = false) {
  Interface made{name, {}, loopback};
  made.address.family = family;
  made.address.bytes[0] = 10;
  return made;
}

const std::vector<Interface> present = {
    interface("eth0", SocketAddress::ipv4), interface("lo", SocketAddress::ipv4, true),
    interface("eth0", SocketAddress::ipv6), interface("lo", SocketAddress::ipv6, true),
    interface("eth10", SocketAddress::ipv4)};

/// "lo4 lo6": the names and families, in order.
std::string usable(std::string_view names, std::string_view family = "auto") {
  std::string words;
  for (const Interface& each : usable_interfaces(present, names, family))
    words += (words.empty() ? "" : " ") + each.name + std::to_string(each.address.family);
  return words;
}

}  // namespace

TEST_CASE("interfaces are chosen by name and family", "[base]") {
  CHECK(usable("") == "lo4 lo6 eth04 eth104 eth06");
  CHECK(usable("", "ipv6") == "lo6 eth06");
  CHECK(usable("eth") == "eth04 eth104 eth06");
  CHECK(usable("eth1,lo", "ipv4") == "lo4 eth104");
  CHECK(usable("=eth0") == "eth04 eth06");
  CHECK(usable("^lo") == "eth04 eth104 eth06");
  CHECK(usable("^eth") == "lo4 lo6");
  CHECK(usable("^=eth0,lo") == "eth104");
  CHECK(usable(",,lo,", "ipv4") == "lo4");
}

TEST_CASE("names that leave no interface are refused with all that there are", "[base]") {
  const std::vector<std::string> wrong = {"eth99", ",",       "^",   "=eth", "=",
                                          "^=",    "^lo,eth", " lo", "LO",   std::string(300, 'x')};
  for (const std::string& names : wrong) {
    CAPTURE(names);
    try {
      usable_interfaces(present, names, "auto");
      FAIL("it was accepted");
    } catch (const Error& error) {
      const std::string text = error.what();
      CHECK(error.code() == Code::invalid_argument);
      CHECK_THAT(text, Catch::Contains("KHORO_SOCKET_IFNAME is '" + names + "'"));
      for (const char* name : {"eth0 (10.0.0.0)", "lo (", "eth10 ("})
        CHECK_THAT(text, Catch::Contains(name));
    }
  }
  CHECK_THROWS_WITH(usable_interfaces(present, "eth1", "ipv6"),
                    Catch::Contains("no interface of ipv6"));
  const std::vector<Interface> none;
  CHECK_THROWS_WITH(usable_interfaces(none, "", "auto"), Catch::Contains("none is up"));
}

TEST_CASE("this machine has a loopback", "[base]") {
  const std::vector<Interface> here = interfaces_present();
  CHECK(std::any_of(here.begin(), here.end(), [](const Interface& each) { return each.loopback; }));
  CHECK(usable_interfaces(here, "", "auto").front().loopback);
}

TEST_CASE("addresses are written as people write them", "[base]") {
  SocketAddress address;
  address.port = 4711;
  address.family = SocketAddress::ipv4;
  address.bytes = {127, 0, 0, 1};
  CHECK(address.text() == "127.0.0.1:4711");
  address.family = SocketAddress::ipv6;
  address.bytes = {};
  address.bytes[15] = 1;
  CHECK(address.text() == "[::1]:4711");
}
