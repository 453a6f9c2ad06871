// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace khoro {

struct Settings;

/// Rank settings are a rank's own affair; job settings must be equal on all ranks and are compared
/// at init: these two can be chosen for each communicator. Process settings concern the whole
/// process; launcher settings are how a launcher tells a rank who it is; test settings exist only
/// in builds made for tests.
enum class Scope : std::uint8_t { rank, job, process, launcher, test };

enum class SettingType : std::uint8_t { text, integer, bytes, milliseconds, choice };

/// One row of the table that feeds the environment, the settings of a communicator, `khoro info`
/// and the manual page.
struct SettingRow {
  std::string_view name;  // "KHORO_LOG"
  SettingType type;
  std::string_view default_value;  // as a user would write it
  /// Choices "off|error|warn"; a range "1..64" or "4096..65536 step 4096" in the type's unit; ""
  /// for text, which may be anything.
  std::string_view legal;
  Scope scope;
  std::string_view help;  // one sentence
  std::variant<std::string Settings::*, std::int64_t Settings::*> member;
};

std::span<const SettingRow> setting_rows() noexcept;
std::string_view to_string(SettingType type) noexcept;
std::string_view to_string(Scope scope) noexcept;
/// The legal set in words, for messages and manuals: "one of off, error, warn" or "1 to 64".
std::string legal_words(const SettingRow& row);

/// The values in force. One member per row, in the order of the table, which holds the defaults.
struct Settings {
  std::string log;
  std::int64_t deadline_ms;
  std::int64_t init_deadline_ms;
  std::int64_t slots;
  std::int64_t slot_bytes;
  std::int64_t buffer_bytes;
  std::string transport;
  std::int64_t tcp_stripes;
  std::string socket_interfaces;
  std::string socket_family;
  std::int64_t tag_buffer;
  std::string algorithm;
  std::string determinism;
  std::string partials;
  std::string memory;
  std::int64_t device;
  std::string peer_access;
  std::int64_t flagged_bytes;
  std::int64_t direct_bytes;
  std::int64_t gpu_strands;
  std::string trace;
  std::int64_t virtual_gpus;
  std::string topology_file;
  // What a launcher says; -1 when it said nothing.
  std::int64_t rank;
  std::int64_t size;
  std::int64_t local_rank;
  std::int64_t local_size;
  std::int64_t threads;
  std::int64_t key_descriptor;
  std::string job_key_file;
  std::string launcher;
  std::int64_t recorder_descriptor;
  // Only settable in builds made for tests.
  std::string plan_file;
  std::int64_t lose_wakeup;
  std::int64_t publish_early;
  std::int64_t flip_byte;
  std::int64_t virtual_seed;
  std::int64_t virtual_failure;

  /// The defaults.
  Settings();
  /// The defaults, overlaid with what was `chosen` for a communicator (as for choose()), overlaid
  /// with the KHORO_ variables of the environment. A bad value throws invalid_argument naming
  /// variable, value and legal set; the first call of a process logs one warning for each unknown
  /// KHORO_ name, with the nearest known one. Not while another thread changes the environment.
  static Settings from_environment(std::string_view chosen = {});

  /// Sets one value from text. Throws invalid_argument naming setting, value and legal set.
  void set(const SettingRow& row, std::string_view text);
  /// Sets those of scope rank and job from "NAME=VALUE; NAME=VALUE". Throws invalid_argument as
  /// set(), and for a name that none of them has, with the nearest one.
  void choose(std::string_view assignments);
  /// The value as a user would write it.
  std::string text(const SettingRow& row) const;
  /// "name=value" of each job setting, one a line: what must be equal on all ranks.
  std::string job_lines() const;
};

/// A setting with the value it has now, for `khoro info`.
struct SettingValue {
  const SettingRow* row;
  std::string value;
  bool from_environment;
};
std::vector<SettingValue> settings_now();

/// What the environment says by a name that is no setting but of another table, such as that of
/// launchers; none if it is not set. Not while another thread changes the environment.
std::optional<std::string> environment_value(std::string_view name);

}  // namespace khoro
