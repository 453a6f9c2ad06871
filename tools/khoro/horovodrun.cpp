// SPDX-License-Identifier: Apache-2.0
#include "horovodrun.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "base/error.h"

namespace khoro::tool {
namespace {

constexpr std::string_view one_machine = "all ranks are on this machine: leave it out";
constexpr std::string_view one_size = "a job keeps its size: leave it out";
constexpr std::string_view not_needed = "it is not needed: leave it out";

struct Foreign {
  std::string_view option;
  std::string_view instead;
};
constexpr Foreign foreign[] = {
    {"--output-filename", "--output-dir is like it"},
    {"--timeline-filename", "name the file in KHORO_TRACE"},
    {"--log-level", "set KHORO_LOG"},
    {"--start-timeout", "set KHORO_INIT_DEADLINE"},
    {"--network-interface", "set KHORO_SOCKET_IFNAME"},
    {"--network-interfaces", "set KHORO_SOCKET_IFNAME"},
    {"--stall-check-warning-time-seconds", "set KHORO_DEADLINE"},
    {"--stall-check-shutdown-time-seconds", "set KHORO_DEADLINE"},
    {"--check-build", "`khoro info` says what this build can do"},
    {"-cb", "`khoro info` says what this build can do"},
    {"--config-file", "set the variables that `khoro info` lists"},
    {"-hostfile", one_machine},
    {"--hostfile", one_machine},
    {"-p", one_machine},
    {"--ssh-port", one_machine},
    {"-i", one_machine},
    {"--ssh-identity-file", one_machine},
    {"--min-np", one_size},
    {"--min-num-proc", one_size},
    {"--max-np", one_size},
    {"--max-num-proc", one_size},
    {"--host-discovery-script", one_size},
    {"--slots-per-host", one_size},
    {"--reset-limit", one_size},
    {"--elastic-timeout", one_size},
    {"--verbose", not_needed},
    {"--disable-cache", not_needed},
    {"--gloo", not_needed},
    {"--mpi", not_needed},
    {"--mpi-args", not_needed},
    {"--tcp", not_needed},
    {"--autotune", not_needed},
    {"--fusion-threshold-mb", not_needed},
    {"--cycle-time-ms", not_needed},
    {"--cache-capacity", not_needed},
    {"--no-stall-check", not_needed},
};

bool is_this_machine(std::string_view host) {
  if (host == "localhost" || host == "::1" || host == "[::1]" || host.starts_with("127."))
    return true;
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0) return false;
  const std::string_view own = name;
  return host == own || host == own.substr(0, own.find('.'));
}

[[noreturn]] void refuse(std::string_view entry, std::string_view why) {
  throw Error(Code::invalid_argument, fmt::format("-H: '{}' {}", entry, why));
}

/// The slots of one HOST or HOST:SLOTS.
std::int64_t slots_of(std::string_view entry) {
  // An address of IPv6 holds colons of its own, and is in brackets where slots follow.
  const auto colon = entry.rfind(':');
  const bool counted = colon != entry.npos && !is_this_machine(entry);
  const std::string_view host = entry.substr(0, counted ? colon : entry.npos);
  if (host.empty()) refuse(entry, "names no host; write HOST:SLOTS, with commas between");
  if (!is_this_machine(host))
    refuse(entry, "is not this machine; khoro run starts all ranks where it runs");
  if (!counted) return 1;
  const std::string_view text = entry.substr(colon + 1);
  std::int32_t slots = 0;
  const auto [rest, fault] = std::from_chars(text.data(), text.data() + text.size(), slots);
  if (fault != std::errc() || rest != text.data() + text.size() || slots < 1)
    refuse(entry, "has no number of slots after the colon");
  return slots;
}

}  // namespace

std::vector<std::string> respelled(std::vector<std::string> words, const CLI::App& command) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string& word = words[i];
    if (!word.starts_with('-')) break;  // the program
    if (word == "-np") word = "-n";
    const CLI::Option* option = command.get_option_no_throw(word);
    if (option != nullptr && option->get_items_expected_max() > 0) ++i;  // its value
  }
  return words;
}

void check_hosts(const std::string& hosts, int processes) {
  std::int64_t slots = 0;
  for (std::string_view rest = hosts;;) {
    const auto comma = rest.find(',');
    slots += slots_of(rest.substr(0, comma));
    if (comma == rest.npos) break;
    rest.remove_prefix(comma + 1);
  }
  if (slots < processes)
    refuse(hosts, fmt::format("has slots for {} of {} processes", slots, processes));
}

std::string_view instead_of(std::string_view option) {
  option = option.substr(0, option.find('='));
  const auto found = std::find_if(std::begin(foreign), std::end(foreign),
                                  [&](const Foreign& each) { return each.option == option; });
  return found == std::end(foreign) ? std::string_view() : found->instead;
}

}  // namespace khoro::tool
