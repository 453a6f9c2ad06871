// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/launcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace khoro {
namespace {

using enum LauncherReport::State;

constexpr int most_ranks = 1 << 20;

constexpr LauncherRow rows[] = {
    {.name = "khoro",
     .who = "khoro run",
     .rank = "KHORO_RANK",
     .size = "KHORO_SIZE",
     .local_rank = "KHORO_LOCAL_RANK",
     .local_size = "KHORO_LOCAL_SIZE",
     .job = {},
     .starts_ranks = false,
     .own = "KHORO_KEY_FD"},
    {.name = "torchrun",
     .who = "torchrun, or whoever sets RANK and WORLD_SIZE",
     .rank = "RANK",
     .size = "WORLD_SIZE",
     .local_rank = "LOCAL_RANK",
     .local_size = "LOCAL_WORLD_SIZE",
     .job = {"MASTER_PORT", "MASTER_ADDR", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"},
     .starts_ranks = false,
     .own = ""},
    {.name = "openmpi",
     .who = "mpirun of Open MPI",
     .rank = "OMPI_COMM_WORLD_RANK",
     .size = "OMPI_COMM_WORLD_SIZE",
     .local_rank = "OMPI_COMM_WORLD_LOCAL_RANK",
     .local_size = "OMPI_COMM_WORLD_LOCAL_SIZE",
     .job = {"PMIX_NAMESPACE"},
     .starts_ranks = true,
     .own = ""},
    {.name = "mpich",
     .who = "mpirun of MPICH",
     .rank = "PMI_RANK",
     .size = "PMI_SIZE",
     .local_rank = "MPI_LOCALRANKID",
     .local_size = "MPI_LOCALNRANKS",
     .job = {},
     .starts_ranks = true,
     .own = "PMI_FD"},
};

const std::string* find(const LauncherVariables& variables, std::string_view name) {
  const auto found = variables.find(name);
  return found == variables.end() ? nullptr : &found->second;
}

/// Only those of the row.
LauncherVariables select(const LauncherVariables& variables, const LauncherRow& row) {
  LauncherVariables selected;
  for (const std::string_view name : row.variables())
    if (const std::string* value = find(variables, name)) selected.emplace(name, *value);
  return selected;
}

/// A count below `limit`; -1 if the variable is not set, or has the value by which Khoro's own say
/// so. Otherwise `fault` says what is wrong.
int number_of(const LauncherReport& report, std::string_view name, int limit, std::string& fault) {
  const std::string* text = find(report.variables, name);
  if (!text || *text == "-1") return -1;
  int number = -1;
  const char* const end = text->data() + text->size();
  const auto [rest, error] = std::from_chars(text->data(), end, number);
  if (error == std::errc() && rest == end && number >= 0 && number < limit) return number;
  if (fault.empty())
    fault = fmt::format("{} is '{}', which is not a number from 0 to {}", name, *text, limit - 1);
  return -1;
}

void read(LauncherReport& report) {
  const LauncherRow& row = *report.row;
  std::string& fault = report.fault;
  report.size = number_of(report, row.size, most_ranks + 1, fault);
  report.rank = number_of(report, row.rank, report.size > 0 ? report.size : most_ranks, fault);
  report.local_size = number_of(report, row.local_size, most_ranks + 1, fault);
  report.local_rank = number_of(report, row.local_rank, most_ranks, fault);
  if (fault.empty() && (report.rank < 0) != (report.size < 0))
    fault = report.rank < 0 ? fmt::format("{} is set and {} is not", row.size, row.rank)
                            : fmt::format("{} is set and {} is not", row.rank, row.size);
  if (fault.empty() && report.size == 0) fault = fmt::format("{} is 0", row.size);
  if (!fault.empty())
    report.state = incomplete;
  else if (report.rank >= 0)
    report.state = complete;
}

/// Who set the variables of the report: the first process up the line that was not started with
/// them as they are now.
void find_starter(LauncherReport& report, const Ancestry& ancestry) {
  for (std::size_t up = 0; up < ancestry.line.size(); ++up) {
    const Ancestor& ancestor = ancestry.line[up];
    if (!ancestor.variables) return;
    if (select(*ancestor.variables, *report.row) == report.variables) continue;
    report.generation = up;
    report.starter = ancestor;
    return;
  }
}

LauncherReport report_of(const LauncherRow& row, const Ancestry& ancestry) {
  LauncherReport report;
  report.row = &row;
  report.variables = select(ancestry.variables, row);
  read(report);
  if (report.state != absent) find_starter(report, ancestry);
  return report;
}

std::string starter_in_words(const LauncherReport& report) {
  if (!report.generation) return "a process that cannot be seen from here";
  if (*report.generation == 0) return "this process itself";
  return fmt::format("process {} ({})", report.starter.process, report.starter.program);
}

bool nearer(const LauncherReport& a, const LauncherReport& b) {
  return a.generation && (!b.generation || *a.generation < *b.generation);
}

std::string verdict_of(const LauncherReport& report, const LauncherReport* winner,
                       bool one_is_wanted) {
  if (&report == winner) return "wins";
  if (report.state == absent) return "says nothing";
  if (report.state == incomplete) return "is ignored: " + report.fault;
  if (one_is_wanted) return "KHORO_LAUNCHER names another";
  return nearer(*winner, report) ? "was set further out" : "was set as near, and comes later here";
}

std::string reason_for(const LauncherChoice& choice, std::string_view wanted) {
  const LauncherReport* winner = choice.chosen();
  if (!winner)
    return wanted == "auto" ? "no launcher says both which rank this is and of how many"
                            : fmt::format(
                                  "KHORO_LAUNCHER is {}, which does not say both which "
                                  "rank this is and of how many",
                                  wanted);
  if (wanted != "auto") return "KHORO_LAUNCHER names it";
  const auto said = std::count_if(choice.reports.begin(), choice.reports.end(),
                                  [](const LauncherReport& each) { return each.complete(); });
  if (said == 1) return "no other launcher says both which rank this is and of how many";
  const bool alone = std::all_of(
      choice.reports.begin(), choice.reports.end(), [winner](const LauncherReport& each) {
        return &each == winner || !each.complete() || nearer(*winner, each);
      });
  return fmt::format("of {} that say so it was set {}, by {}", said,
                     alone ? "nearest to this process" : "as near as any and comes first",
                     starter_in_words(*winner));
}

}  // namespace

std::vector<std::string_view> LauncherRow::variables() const {
  std::vector<std::string_view> names = {rank, size, local_rank, local_size, own};
  names.insert(names.end(), job.begin(), job.end());
  std::erase(names, "");
  return names;
}

std::span<const LauncherRow> launcher_rows() noexcept { return rows; }

std::string LauncherReport::job() const {
  const bool started = row->starts_ranks && generation.value_or(0) > 0;
  if (row->starts_ranks ? !started : !find(variables, row->job[0])) return "";
  std::string text = fmt::format("{} of {} ranks", row->name, size);
  for (const std::string_view name : row->job)
    if (const std::string* value = find(variables, name))
      text += fmt::format("\n{}={}", name, *value);
  if (started) text += fmt::format("\nprocess {} of {}", starter.process, starter.started);
  return text;
}

LauncherChoice choose_launcher(const Ancestry& ancestry, std::string_view wanted) {
  LauncherChoice choice;
  for (const LauncherRow& row : rows) choice.reports.push_back(report_of(row, ancestry));
  for (std::size_t i = 0; i < choice.reports.size(); ++i) {
    const LauncherReport& report = choice.reports[i];
    if (!report.complete() || (wanted != "auto" && wanted != report.row->name)) continue;
    if (!choice.chosen() || nearer(report, *choice.chosen())) choice.winner = static_cast<int>(i);
  }
  for (LauncherReport& report : choice.reports)
    report.verdict = verdict_of(report, choice.chosen(), wanted != "auto");
  choice.why = reason_for(choice, wanted);
  return choice;
}

}  // namespace khoro
