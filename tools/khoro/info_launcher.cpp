// SPDX-License-Identifier: Apache-2.0
#include "info_launcher.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/settings.h"
#include "rendezvous/launcher.h"
#include "table.h"

namespace khoro::tool {
namespace {

std::string number_in_words(int number) { return number < 0 ? "-" : std::to_string(number); }

std::string starter_in_words(const LauncherReport& report) {
  if (report.state == LauncherReport::State::absent) return "-";
  if (!report.generation) return "unseen";
  return fmt::format("{} ({})", report.starter.process, report.starter.program);
}

std::string_view word_of(LauncherReport::State state) {
  constexpr std::string_view words[] = {"absent", "incomplete", "complete"};
  return words[static_cast<int>(state)];
}

void print_text(const LauncherChoice& choice) {
  Table table({"launcher", "rank", "size", "local rank", "local size", "set by process", "it"});
  for (const LauncherReport& report : choice.reports)
    table.add({std::string(report.row->name), number_in_words(report.rank),
               number_in_words(report.size), number_in_words(report.local_rank),
               number_in_words(report.local_size), starter_in_words(report), report.verdict});
  fmt::print("{}\n", table.text());
  const LauncherReport* chosen = choice.chosen();
  if (!chosen) return fmt::print("no rank: {}\n", choice.why);
  fmt::print("rank {} of {}, from {}: {}\n", chosen->rank, chosen->size, chosen->row->who,
             choice.why);
}

nlohmann::ordered_json json_of(const LauncherReport& report) {
  const auto number = [](int value) {
    return value < 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(value);
  };
  nlohmann::ordered_json all = {{"name", report.row->name},
                                {"state", word_of(report.state)},
                                {"rank", number(report.rank)},
                                {"size", number(report.size)},
                                {"local_rank", number(report.local_rank)},
                                {"local_size", number(report.local_size)},
                                {"generation", nullptr},
                                {"process", nullptr},
                                {"program", nullptr},
                                {"verdict", report.verdict},
                                {"variables", nlohmann::ordered_json::object()}};
  if (report.generation) {
    all["generation"] = *report.generation;
    all["process"] = report.starter.process;
    all["program"] = report.starter.program;
  }
  for (const auto& [name, value] : report.variables) all["variables"][name] = value;
  return all;
}

void print_json(const LauncherChoice& choice) {
  nlohmann::ordered_json all = {{"version", 1},
                                {"launcher", nullptr},
                                {"rank", nullptr},
                                {"size", nullptr},
                                {"why", choice.why}};
  if (const LauncherReport* chosen = choice.chosen()) {
    all["launcher"] = chosen->row->name;
    all["rank"] = chosen->rank;
    all["size"] = chosen->size;
  }
  for (const LauncherReport& report : choice.reports) all["launchers"].push_back(json_of(report));
  // What is no UTF-8 in a variable is replaced.
  fmt::print("{}\n", all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace

void print_launchers(Format format) {
  const std::string wanted = Settings::from_environment().launcher;
  const LauncherChoice choice = choose_launcher(Ancestry::of_this_process(), wanted);
  format == Format::json ? print_json(choice) : print_text(choice);
}

}  // namespace khoro::tool
