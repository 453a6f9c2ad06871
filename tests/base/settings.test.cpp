// SPDX-License-Identifier: Apache-2.0
#include "base/settings.h"

#include <fmt/format.h>

#include <set>

#include "base/error.h"
#include "base/suggest.h"
#include "support/captured_log.h"
#include "support/catch.h"
#include "support/scoped_environment.h"

using namespace khoro;
using test::CapturedLog;
using test::ScopedEnvironment;

namespace {

const SettingRow& row(std::string_view name) {
  for (const SettingRow& row : setting_rows())
    if (row.name == name) return row;
  throw std::out_of_range(std::string(name));
}

std::string refusal(const std::string& name, const std::string& value) {
  ScopedEnvironment variable(name, value);
  try {
    Settings::from_environment();
  } catch (const Error& error) {
    CHECK(error.code() == Code::invalid_argument);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("the first reading warns once of each unknown name and proposes the nearest one",
          "[base]") {
  ScopedEnvironment typo("KHORO_DEADLIN", "3"), lower("khoro_log", "info"), far("KHORO_XYZZY", "1");
  ScopedEnvironment good("KHORO_SLOTS", "4");
  CapturedLog log;
  Settings::from_environment();
  CHECK(log.count("KHORO_DEADLIN is ignored") == 1);
  CHECK(log.count("did you mean KHORO_DEADLINE?") == 1);
  CHECK(log.count("khoro_log is ignored: no setting has that name; did you mean KHORO_LOG?") == 1);
  CHECK(log.count("KHORO_XYZZY is ignored") == 1);
  CHECK(log.count("KHORO_SLOTS") == 0);
  CHECK(log.lines().size() == 3);
  Settings::from_environment();
  CHECK(log.lines().size() == 3);
}

TEST_CASE("every default is legal, every row is named once and writes back what it read",
          "[base]") {
  std::set<std::string_view> names;
  for (const SettingRow& row : setting_rows()) {
    INFO(row.name);
    CHECK(names.insert(row.name).second);
    CHECK(row.name.substr(0, 6) == "KHORO_");
    CHECK((row.scope == Scope::test) == (row.name.substr(0, 11) == "KHORO_TEST_"));
    CHECK(row.help.back() == '.');
    Settings settings;
    CHECK(settings.text(row) == row.default_value);
  }
}

TEST_CASE("a value from the environment wins over the default", "[base]") {
  ScopedEnvironment slots("KHORO_SLOTS", "3"), log("KHORO_LOG", "trace");
  Settings settings = Settings::from_environment();
  CHECK(settings.slots == 3);
  CHECK(settings.log == "trace");
  CHECK(settings.deadline_ms == 600'000);
  int from_environment = 0;
  for (const SettingValue& value : settings_now()) from_environment += value.from_environment;
  CHECK(from_environment == 2);
}

TEST_CASE("what is chosen for a communicator wins over the default and loses to the environment",
          "[base]") {
  ScopedEnvironment slots("KHORO_SLOTS", "3");
  const Settings settings = Settings::from_environment(
      " KHORO_SLOTS=5; KHORO_DEADLINE = 3s ;KHORO_ALGORITHM=allreduce:ring\n;; ");
  CHECK(settings.slots == 3);
  CHECK(settings.deadline_ms == 3'000);
  CHECK(settings.algorithm == "allreduce:ring");
}

TEST_CASE("every setting of scope rank and job, and no other, can be chosen for a communicator",
          "[base]") {
  for (const SettingRow& row : setting_rows()) {
    INFO(row.name);
    const std::string assignment = fmt::format("{}={}", row.name, row.default_value);
    if (row.scope == Scope::rank || row.scope == Scope::job)
      CHECK_NOTHROW(Settings().choose(assignment));
    else
      CHECK_THROWS_WITH(Settings().choose(assignment),
                        Catch::Contains(std::string(row.name)) &&
                            Catch::Contains("cannot be chosen for a communicator"));
  }
  CHECK_THROWS_WITH(Settings().choose("KHORO_SLOT=3"),
                    Catch::Contains("did you mean KHORO_SLOTS?"));
  CHECK_THROWS_WITH(Settings().choose("KHORO_SLOTS"), Catch::Contains("write NAME=VALUE"));
  CHECK_THROWS_WITH(Settings().choose("=3"), Catch::Contains("choose among KHORO_DEADLINE"));
  CHECK_THROWS_WITH(Settings().choose("KHORO_SLOTS=0"),
                    Catch::Contains("KHORO_SLOTS is '0', which is not a number from 1 to 64"));
}

TEST_CASE("numbers take units, and are written back with the largest that fits", "[base]") {
  Settings settings;
  settings.set(row("KHORO_SLOT_BYTES"), "1M");
  CHECK(settings.slot_bytes == 1'048'576);
  CHECK(settings.text(row("KHORO_SLOT_BYTES")) == "1M");
  settings.set(row("KHORO_SLOT_BYTES"), "12288");
  CHECK(settings.text(row("KHORO_SLOT_BYTES")) == "12K");
  settings.set(row("KHORO_DEADLINE"), "90s");
  CHECK(settings.deadline_ms == 90'000);
  settings.set(row("KHORO_DEADLINE"), "2min");
  CHECK(settings.deadline_ms == 120'000);
  settings.set(row("KHORO_DEADLINE"), "1500");
  CHECK(settings.text(row("KHORO_DEADLINE")) == "1500ms");
}

TEST_CASE("a bad value is refused with name, value and legal set", "[base]") {
  CHECK(refusal("KHORO_LOG", "loud") ==
        "KHORO_LOG is 'loud', which is not one of off, error, warn, info, trace");
  CHECK(refusal("KHORO_SLOTS", "0") == "KHORO_SLOTS is '0', which is not a number from 1 to 64");
  for (const char* bad : {"", " 8", "8 ", "8x", "-8", "65", "1e1", "0x8", "99999999999999999999"})
    CHECK_FALSE(refusal("KHORO_SLOTS", bad).empty());
  for (const char* bad : {"4097", "3", "0", "-1", "1000000", "64Q", "9223372036854775807G", "32M"})
    CHECK(refusal("KHORO_SLOT_BYTES", bad).find("a multiple of 4K from 4K to 16M bytes") !=
          std::string::npos);
  CHECK_FALSE(refusal("KHORO_DEADLINE", "0").empty());
  CHECK_FALSE(refusal("KHORO_DEADLINE", "10m").empty());
}

TEST_CASE("the lines that all ranks must agree on hold the job settings alone", "[base]") {
  ScopedEnvironment slots("KHORO_SLOTS", "3");
  CHECK(Settings::from_environment().job_lines() ==
        "KHORO_SLOTS=3\nKHORO_SLOT_BYTES=64K\nKHORO_BUFFER_BYTES=256M\nKHORO_TRANSPORT=auto\n"
        "KHORO_TCP_STRIPES=2\n"
        "KHORO_SOCKET_FAMILY=auto\nKHORO_ALGORITHM=\nKHORO_DETERMINISM=default\n"
        "KHORO_PARTIALS=dtype\nKHORO_MEMORY=host\nKHORO_PEER_ACCESS=auto\n"
        "KHORO_FLAGGED_BYTES=4K\nKHORO_DIRECT_BYTES=16K\nKHORO_GPU_STRANDS=0\n");
}

TEST_CASE("the nearest word is found across a typo of each kind", "[base]") {
  const std::string_view words[] = {"allreduce", "allgather", "broadcast"};
  for (const char* typo : {"alreduce", "allreducee", "allreduxe", "allerduce", "AllReduce"})
    CHECK(nearest(typo, words) == "allreduce");
  CHECK(nearest("brodcast", words) == "broadcast");
  CHECK(nearest("zzz", words).empty());
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("abc", "acb") == 1);
}
