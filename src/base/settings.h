// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace khoro {

/// Job settings must be equal on all ranks and are compared at init; rank settings are a rank's own
/// affair; launcher settings are how a launcher tells a rank who it is.
enum class Scope : std::uint8_t { rank, job, launcher, test };

enum class SettingType : std::uint8_t { text, integer, bytes, milliseconds, choice };

/// One row of the table that feeds the environment, the config struct, `khoro info` and the manual
/// page.
struct SettingRow {
  std::string_view name;  // "KHORO_LOG"
  SettingType type;
  std::string_view default_value;
  std::string_view legal;  // a range "1..64", or choices "off|error|warn|info|trace", or ""
  Scope scope;
  std::string_view help;  // one sentence
};

std::span<const SettingRow> setting_rows() noexcept;

/// The values in force, read once from the environment.
struct Settings {
  // One member per row, in the order of the table.
  std::string log = "warn";
  std::int64_t deadline_ms = 600'000;
  std::int64_t init_deadline_ms = 60'000;
  std::int64_t slots = 8;
  std::int64_t slot_bytes = 65'536;
  std::string algorithm;
  std::string plan_file;
  // ... what a launcher says; -1 or empty when it said nothing.
  std::int64_t rank = -1;
  std::int64_t size = -1;
  std::int64_t local_rank = -1;
  std::int64_t local_size = -1;
  std::int64_t threads = 1;
  std::int64_t key_descriptor = -1;

  /// Reads every KHORO_ variable. A bad value throws invalid_argument naming variable, value and
  /// legal set; an unknown name is one warning with the nearest known one.
  static Settings from_environment();
};

/// Settings with the value each has now, for `khoro info`.
struct SettingValue {
  const SettingRow* row;
  std::string value;
  bool from_environment;
};

}  // namespace khoro
