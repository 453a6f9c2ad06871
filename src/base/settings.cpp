// SPDX-License-Identifier: Apache-2.0
#include "base/settings.h"

#include <fmt/format.h>
#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "base/suggest.h"

extern char** environ;

namespace khoro {
namespace {

#ifdef KHORO_TEST_SWITCHES
constexpr bool test_switches = true;
#else
constexpr bool test_switches = false;
#endif

using S = Settings;
using enum SettingType;

constexpr SettingRow table[] = {
    {"KHORO_LOG", choice, "warn", level_names, Scope::process,
     "What is logged to standard error or the caller's callback.", &S::log},
    {"KHORO_DEADLINE", milliseconds, "10min", "1..604800000", Scope::rank,
     "How long an operation may take before it fails.", &S::deadline_ms},
    {"KHORO_INIT_DEADLINE", milliseconds, "1min", "1..604800000", Scope::rank,
     "How long creating a communicator may take before it fails and names who did not come.",
     &S::init_deadline_ms},
    {"KHORO_SLOTS", integer, "8", "1..64", Scope::job,
     "Messages that may be under way on one channel; several ranks need 2.", &S::slots},
    {"KHORO_SLOT_BYTES", bytes, "64K", "4096..16777216 step 4096", Scope::job,
     "Bytes that one message carries at most; three times as many over sockets.", &S::slot_bytes},
    {"KHORO_BUFFER_BYTES", bytes, "256M", "65536..1099511627776", Scope::job,
     "Bytes that the channels of a communicator hold on each rank at most; messages carry less "
     "than KHORO_SLOT_BYTES where there are many ranks for it.",
     &S::buffer_bytes},
    {"KHORO_TRANSPORT", choice, "auto", "auto|shm|tcp", Scope::job,
     "What carries the messages between ranks; auto takes shared memory where it reaches.",
     &S::transport},
    {"KHORO_TCP_STRIPES", integer, "2", "1..16", Scope::job,
     "Sockets between two ranks that tcp connects; long messages are cut over them.",
     &S::tcp_stripes},
    {"KHORO_SOCKET_IFNAME", text, "", "", Scope::rank,
     "Interfaces that sockets between ranks may use, by the beginnings of their names with commas "
     "between; = before the list takes whole names, ^ all others; empty finds one.",
     &S::socket_interfaces},
    {"KHORO_SOCKET_FAMILY", choice, "auto", "auto|ipv4|ipv6", Scope::job,
     "What addresses sockets between ranks use; auto prefers IPv4.", &S::socket_family},
    {"KHORO_TAG_BUFFER", bytes, "64M", "0..1099511627776", Scope::rank,
     "Bytes of messages with tags from one rank that are kept until they are received.",
     &S::tag_buffer},
    {"KHORO_ALGORITHM", text, "", "", Scope::job,
     "Forces an algorithm, by a name from `khoro plan list`; empty lets the library choose.",
     &S::algorithm},
    {"KHORO_DETERMINISM", choice, "default", "default|exact", Scope::job,
     "What the bits of a reduction depend on: with exact on the values of the ranks alone, "
     "whatever the algorithm, the size and the placement of ranks.",
     &S::determinism},
    {"KHORO_PARTIALS", choice, "dtype", "dtype|f32", Scope::job,
     "In which type partial sums and products of 16-bit floats travel between ranks.",
     &S::partials},
    {"KHORO_MEMORY", choice, "host", "host|cuda|virtual", Scope::job,
     "Where the buffers of calls lie: in memory of the host, of GPUs, or of virtual GPUs.",
     &S::memory},
    {"KHORO_DEVICE", integer, "-1", "-1..1048575", Scope::rank,
     "The GPU of the rank; -1 takes them in turn, by the rank on its machine.", &S::device},
    {"KHORO_PEER_ACCESS", choice, "auto", "auto|off", Scope::job,
     "Whether kernels reach into memory of other GPUs where a link carries that; off passes all "
     "messages through memory of the host.",
     &S::peer_access},
    {"KHORO_FLAGGED_BYTES", bytes, "4K", "0..16384 step 4", Scope::job,
     "Messages between GPUs of so many bytes or less travel in words with a flag each, which takes "
     "twice the bytes and spares a round of fences.",
     &S::flagged_bytes},
    {"KHORO_DIRECT_BYTES", bytes, "16K", "0..1099511627776", Scope::job,
     "Messages between GPUs of one process of so many bytes or more are read where they lie, or "
     "written where they are to be, if the other's GPU reaches the buffers; 0 copies all of them.",
     &S::direct_bytes},
    {"KHORO_GPU_STRANDS", integer, "0", "0..32", Scope::job,
     "Parts of a long call that blocks of a GPU do side by side at most, each over channels of its "
     "own; 0 is 16, and 1 on virtual GPUs, whose blocks share few cores. Fewer where the channels "
     "would take more than half of KHORO_BUFFER_BYTES.",
     &S::gpu_strands},
    {"KHORO_TRACE", text, "", "", Scope::process,
     "A file to which the ranks write when each call began and ended, and who waited for whom, for "
     "chrome://tracing and Perfetto; empty writes none.",
     &S::trace},
    {"KHORO_VIRTUAL_GPUS", integer, "0", "0..64", Scope::process,
     "How many virtual GPUs the process has, which are threads and memory of the host; at most as "
     "many as KHORO_TOPO_FILE has GPUs.",
     &S::virtual_gpus},
    {"KHORO_TOPO_FILE", text, "", "", Scope::process,
     "A file that describes the machine of virtual GPUs, in any form that `khoro topo` reads; "
     "empty lets all of them reach each other.",
     &S::topology_file},
    {"KHORO_RANK", integer, "-1", "-1..1048575", Scope::launcher,
     "The first rank of this process, set by the launcher.", &S::rank},
    {"KHORO_SIZE", integer, "-1", "-1..1048576", Scope::launcher,
     "The number of ranks of the job, set by the launcher.", &S::size},
    {"KHORO_LOCAL_RANK", integer, "-1", "-1..1048575", Scope::launcher,
     "The first rank of this process among those of its machine, set by the launcher.",
     &S::local_rank},
    {"KHORO_LOCAL_SIZE", integer, "-1", "-1..1048576", Scope::launcher,
     "The number of ranks on this machine, set by the launcher.", &S::local_size},
    {"KHORO_THREADS", integer, "1", "1..4096", Scope::launcher,
     "The number of ranks that this process holds, one a thread, set by the launcher.",
     &S::threads},
    {"KHORO_KEY_FD", integer, "-1", "-1..1048575", Scope::launcher,
     "An inherited descriptor that holds the job's key, set by the launcher.", &S::key_descriptor},
    {"KHORO_JOB_KEY_FILE", text, "", "", Scope::launcher,
     "A file of mode 0600 with 32 random bytes or more, one for each job: its key, where the "
     "launcher passes no descriptor.",
     &S::job_key_file},
    {"KHORO_LAUNCHER", choice, "auto", "auto|khoro|torchrun|openmpi|mpich", Scope::launcher,
     "Whose variables say which rank a process is; auto takes those that were set nearest to it.",
     &S::launcher},
    {"KHORO_RECORDER_FD", integer, "-1", "-1..1048575", Scope::launcher,
     "An inherited socket to the launcher, which keeps what ranks did last, set by the launcher.",
     &S::recorder_descriptor},
    {"KHORO_TEST_PLAN_FILE", text, "", "", Scope::test, "A plan to run in place of the one chosen.",
     &S::plan_file},
    {"KHORO_TEST_LOSE_WAKEUP", integer, "0", "0..1000000000", Scope::test,
     "Loses every so many-th wake-up of a sleeping rank; 0 loses none.", &S::lose_wakeup},
    {"KHORO_TEST_PUBLISH_EARLY", integer, "0", "0..1000000000", Scope::test,
     "Shows every so many-th message of a channel before its payload is there; 0 shows none.",
     &S::publish_early},
    {"KHORO_TEST_FLIP_BYTE", integer, "-1", "-1..1048575", Scope::test,
     "The rank on which the benchmarks flip a byte before they check a result; -1 is none.",
     &S::flip_byte},
    {"KHORO_TEST_VIRTUAL_SEED", integer, "0", "0..1000000000", Scope::test,
     "Delays virtual GPUs at random, by a choice that this number fixes; 0 delays nothing.",
     &S::virtual_seed},
    {"KHORO_TEST_VIRTUAL_FAILURE", integer, "0", "0..1000000000", Scope::test,
     "Refuses memory to the so many-th thing that asks virtual GPUs for some; 0 refuses none.",
     &S::virtual_failure},
};

struct Range {
  std::int64_t low, high, step;
};

Range range_of(const SettingRow& row) {
  Range range{std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max(),
              1};
  const char* end = row.legal.data() + row.legal.size();
  auto low = std::from_chars(row.legal.data(), end, range.low);
  auto high = std::from_chars(low.ptr + 2, end, range.high);
  constexpr std::string_view step = " step ";
  if (high.ptr != end) std::from_chars(high.ptr + step.size(), end, range.step);
  return range;
}

struct Unit {
  std::string_view name;
  std::int64_t factor;
};
constexpr Unit byte_units[] = {{"G", 1 << 30}, {"M", 1 << 20}, {"K", 1 << 10}};
constexpr Unit time_units[] = {{"min", 60'000}, {"s", 1'000}, {"ms", 1}};

std::span<const Unit> units_of(SettingType type) {
  if (type == bytes) return byte_units;
  if (type == milliseconds) return time_units;
  return {};
}

/// Nothing if the text is not a number with a unit of that type.
std::optional<std::int64_t> parse_number(SettingType type, std::string_view text) {
  std::int64_t number = 0;
  auto [rest, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc()) return {};
  std::string_view unit(rest, static_cast<std::size_t>(text.data() + text.size() - rest));
  if (unit.empty()) return number;
  for (const Unit& known : units_of(type))
    if (unit == known.name) {
      if (__builtin_mul_overflow(number, known.factor, &number)) return {};
      return number;
    }
  return {};
}

std::string write_number(SettingType type, std::int64_t number) {
  for (const Unit& unit : units_of(type))
    if (number != 0 && number % unit.factor == 0)
      return fmt::format("{}{}", number / unit.factor, unit.name);
  return std::to_string(number);
}

std::vector<std::string_view> choices_of(const SettingRow& row) {
  std::vector<std::string_view> choices;
  for (std::string_view rest = row.legal; !rest.empty();) {
    auto bar = std::min(rest.find('|'), rest.size());
    choices.push_back(rest.substr(0, bar));
    rest.remove_prefix(std::min(bar + 1, rest.size()));
  }
  return choices;
}

[[noreturn]] void refuse(const SettingRow& row, std::string_view value) {
  throw Error(Code::invalid_argument,
              fmt::format("{} is '{}', which is not {}", row.name, value, legal_words(row)));
}

bool settable(const SettingRow& row) { return row.scope != Scope::test || test_switches; }

/// Of any scope, in this build or another.
bool is_setting(std::string_view name) {
  return std::any_of(std::begin(table), std::end(table),
                     [name](const SettingRow& row) { return row.name == name; });
}

void warn_of_unknown_names() {
  std::vector<std::string_view> known;
  for (const SettingRow& row : table)
    if (settable(row)) known.push_back(row.name);
  for (char** entry = environ; entry && *entry; ++entry) {
    std::string_view name(*entry);
    name = name.substr(0, name.find('='));
    if (name.size() < 6 || ::strncasecmp(name.data(), "KHORO_", 6) != 0) continue;
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    if (is_setting(name)) {
      log(LogLevel::warn, "{} is ignored: it exists only in builds made for tests", name);
      continue;
    }
    std::string_view meant = nearest(name, known);
    log(LogLevel::warn, "{} is ignored: no setting has that name; {}", name,
        meant.empty() ? std::string("`khoro info` lists them all")
                      : fmt::format("did you mean {}?", meant));
  }
}

bool chosen_per_communicator(const SettingRow& row) {
  return row.scope == Scope::rank || row.scope == Scope::job;
}

const SettingRow& row_to_choose(std::string_view name) {
  std::vector<std::string_view> known;
  for (const SettingRow& row : table)
    if (chosen_per_communicator(row)) {
      if (row.name == name) return row;
      known.push_back(row.name);
    }
  const std::string_view meant = is_setting(name) ? std::string_view() : nearest(name, known);
  throw Error(Code::invalid_argument,
              fmt::format("'{}' cannot be chosen for a communicator; {}", name,
                          meant.empty() ? fmt::format("choose among {}", fmt::join(known, ", "))
                                        : fmt::format("did you mean {}?", meant)));
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\n";
  const auto first = std::min(text.find_first_not_of(blanks), text.size());
  const auto last = text.find_last_not_of(blanks);
  return text.substr(first, last == text.npos ? 0 : last - first + 1);
}

}  // namespace

std::span<const SettingRow> setting_rows() noexcept { return table; }

std::string_view to_string(SettingType type) noexcept {
  constexpr std::string_view names[] = {"text", "integer", "bytes", "milliseconds", "choice"};
  return names[static_cast<int>(type)];
}

std::string_view to_string(Scope scope) noexcept {
  constexpr std::string_view names[] = {"rank", "job", "process", "launcher", "test"};
  return names[static_cast<int>(scope)];
}

std::string legal_words(const SettingRow& row) {
  if (row.type == text) return "any text";
  if (row.type == choice) return fmt::format("one of {}", fmt::join(choices_of(row), ", "));
  Range range = range_of(row);
  std::string words = fmt::format("a number from {} to {}", write_number(row.type, range.low),
                                  write_number(row.type, range.high));
  if (range.step != 1)
    words = fmt::format("a multiple of {} from {} to {}", write_number(row.type, range.step),
                        write_number(row.type, range.low), write_number(row.type, range.high));
  if (row.type == bytes) words += " bytes (K, M and G are powers of 1024)";
  if (row.type == milliseconds) words += " (ms, s or min; ms if no unit is given)";
  return words;
}

Settings::Settings() {
  for (const SettingRow& row : table) set(row, row.default_value);
}

void Settings::set(const SettingRow& row, std::string_view value) {
  if (auto* member = std::get_if<std::string Settings::*>(&row.member)) {
    if (row.type == choice) {
      auto choices = choices_of(row);
      if (std::find(choices.begin(), choices.end(), value) == choices.end()) refuse(row, value);
    }
    this->** member = value;
    return;
  }
  auto number = parse_number(row.type, value);
  Range range = range_of(row);
  if (!number || *number < range.low || *number > range.high || *number % range.step != 0)
    refuse(row, value);
  this->*std::get<std::int64_t Settings::*>(row.member) = *number;
}

void Settings::choose(std::string_view assignments) {
  while (!assignments.empty()) {
    const auto end = std::min(assignments.find(';'), assignments.size());
    const std::string_view assignment = trimmed(assignments.substr(0, end));
    assignments.remove_prefix(std::min(end + 1, assignments.size()));
    if (assignment.empty()) continue;
    const auto equals = assignment.find('=');
    if (equals == assignment.npos)
      throw Error(Code::invalid_argument,
                  fmt::format("'{}' has no value; write NAME=VALUE, and ';' between two of them",
                              assignment));
    set(row_to_choose(trimmed(assignment.substr(0, equals))),
        trimmed(assignment.substr(equals + 1)));
  }
}

std::string Settings::text(const SettingRow& row) const {
  if (auto* member = std::get_if<std::string Settings::*>(&row.member)) return this->**member;
  return write_number(row.type, this->*std::get<std::int64_t Settings::*>(row.member));
}

Settings Settings::from_environment(std::string_view chosen) {
  static std::atomic_flag warned = ATOMIC_FLAG_INIT;
  Settings settings;
  settings.choose(chosen);
  for (const SettingRow& row : table) {
    const char* value = settable(row) ? std::getenv(row.name.data()) : nullptr;
    if (value) settings.set(row, value);
  }
  if (!warned.test_and_set()) warn_of_unknown_names();
  return settings;
}

std::string Settings::job_lines() const {
  std::string lines;
  for (const SettingRow& row : table)
    if (row.scope == Scope::job) lines += fmt::format("{}={}\n", row.name, text(row));
  return lines;
}

std::optional<std::string> environment_value(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  return value ? std::optional<std::string>(value) : std::nullopt;
}

std::vector<SettingValue> settings_now() {
  Settings settings = Settings::from_environment();
  std::vector<SettingValue> values;
  for (const SettingRow& row : table)
    if (settable(row))
      values.push_back({&row, settings.text(row), std::getenv(row.name.data()) != nullptr});
  return values;
}

}  // namespace khoro
