// SPDX-License-Identifier: Apache-2.0
#include "base/interfaces.h"

#include <arpa/inet.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/error.h"

namespace khoro {
namespace {

SocketAddress address_of(const sockaddr& any) noexcept {
  SocketAddress address;
  if (any.sa_family == AF_INET) {
    sockaddr_in from;
    std::memcpy(&from, &any, sizeof from);
    address.family = SocketAddress::ipv4;
    std::memcpy(address.bytes.data(), &from.sin_addr, sizeof from.sin_addr);
  } else if (any.sa_family == AF_INET6) {
    sockaddr_in6 from;
    std::memcpy(&from, &any, sizeof from);
    address.family = SocketAddress::ipv6;
    address.scope = from.sin6_scope_id;
    std::memcpy(address.bytes.data(), &from.sin6_addr, sizeof from.sin6_addr);
  }
  return address;
}

/// What a user asked for.
struct Wanted {
  std::vector<std::string_view> names;
  bool whole = false;
  bool all_but = false;

  explicit Wanted(std::string_view list) {
    all_but = list.starts_with('^');
    if (all_but) list.remove_prefix(1);
    whole = list.starts_with('=');
    if (whole) list.remove_prefix(1);
    while (!list.empty()) {
      const auto comma = std::min(list.find(','), list.size());
      if (comma > 0) names.push_back(list.substr(0, comma));
      list.remove_prefix(std::min(comma + 1, list.size()));
    }
  }
  bool accepts(std::string_view name) const {
    const bool named = std::any_of(names.begin(), names.end(), [&](std::string_view each) {
      return whole ? name == each : name.starts_with(each);
    });
    return named != all_but;
  }
};

std::string list_of(std::span<const Interface> present) {
  std::vector<std::string> words;
  for (const Interface& each : present) {
    std::string address = each.address.text();
    address.erase(address.rfind(':'));
    words.push_back(fmt::format("{} ({})", each.name, address));
  }
  return words.empty() ? "none is up" : fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace

std::string SocketAddress::text() const {
  char words[INET6_ADDRSTRLEN] = "";
  if (family == ipv4) {
    ::inet_ntop(AF_INET, bytes.data(), words, sizeof words);
    return fmt::format("{}:{}", words, port);
  }
  if (family != ipv6) return "nowhere:0";
  ::inet_ntop(AF_INET6, bytes.data(), words, sizeof words);
  return scope == 0 ? fmt::format("[{}]:{}", words, port)
                    : fmt::format("[{}%{}]:{}", words, scope, port);
}

std::vector<Interface> interfaces_present() {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) throw_errno("cannot list the network interfaces");
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(all, ::freeifaddrs);
  std::vector<Interface> present;
  for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || (each->ifa_flags & IFF_UP) == 0 ||
        (each->ifa_flags & IFF_RUNNING) == 0)
      continue;
    const SocketAddress address = address_of(*each->ifa_addr);
    if (address.family == SocketAddress::none) continue;
    present.push_back({each->ifa_name, address, (each->ifa_flags & IFF_LOOPBACK) != 0});
  }
  return present;
}

std::vector<Interface> usable_interfaces(std::span<const Interface> present, std::string_view names,
                                         std::string_view family) {
  const Wanted wanted(names);
  // "," and "^" name nothing, which nobody means.
  const bool sensible = names.empty() || !wanted.names.empty();
  std::vector<Interface> usable;
  for (const Interface& each : present) {
    if (family == "ipv4" && each.address.family != SocketAddress::ipv4) continue;
    if (family == "ipv6" && each.address.family != SocketAddress::ipv6) continue;
    if (sensible && (names.empty() || wanted.accepts(each.name))) usable.push_back(each);
  }
  if (usable.empty() && names.empty())
    throw Error(Code::invalid_argument,
                fmt::format("KHORO_SOCKET_FAMILY is '{}', and no interface has such an address; "
                            "present are {}",
                            family, list_of(present)));
  if (usable.empty())
    throw Error(Code::invalid_argument,
                fmt::format("KHORO_SOCKET_IFNAME is '{}', which leaves no interface{}; present are "
                            "{}",
                            names, family == "auto" ? "" : fmt::format(" of {}", family),
                            list_of(present)));
  std::stable_sort(usable.begin(), usable.end(), [&](const Interface& a, const Interface& b) {
    if (names.empty() && a.loopback != b.loopback) return a.loopback;
    return a.address.family < b.address.family;
  });
  return usable;
}

}  // namespace khoro
