// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/packet_socket.h"
#include "base/process_stat.h"
#include "base/ranks.h"
#include "base/system.h"
#include "commands.h"
#include "communicator/flight_report.h"
#include "launch_status.h"
#include "table.h"

namespace khoro::tool {
namespace {

using namespace std::chrono_literals;
using nlohmann::ordered_json;

constexpr Duration patience = 2s;
constexpr std::size_t most_bytes = 256 << 20;

/// A launcher that was found, and what it said.
struct JobFound {
  pid_t pid = 0;
  uid_t user = 0;
  Descriptor socket;
  std::optional<ordered_json> said;
};

/// The launchers of this user, or for root of all users, by process; `only` narrows it to one.
std::vector<JobFound> find_jobs(pid_t only) {
  std::map<pid_t, JobFound> jobs;
  std::ifstream sockets("/proc/net/unix");
  const std::string prefix = std::string(" @") + job_socket_prefix;
  for (std::string line; std::getline(sockets, line);) {
    const auto at = line.find(prefix);
    unsigned user = 0;
    int pid = 0;
    if (at == line.npos ||
        std::sscanf(line.c_str() + at + prefix.size(), "%u-%d-", &user, &pid) != 2)
      continue;
    if ((only != 0 && pid != only) || (::geteuid() != 0 && user != ::geteuid())) continue;
    try {
      Descriptor socket = connect_to(line.substr(at + 2));
      // Anybody can take any name: the system knows whose it is.
      const auto peer = socket ? peer_of(socket) : std::nullopt;
      if (peer && peer->user == user && peer->process == pid)
        jobs[pid] = JobFound{pid, user, std::move(socket), {}};
    } catch (const Error&) {
      // It ended meanwhile.
    }
  }
  std::vector<JobFound> found;
  for (auto& [pid, job] : jobs) found.push_back(std::move(job));
  return found;
}

std::optional<std::string> receive(const JobFound& job, Time until) {
  pollfd one{job.socket.number(), POLLIN, 0};
  if (::poll(&one, 1, milliseconds_until(until)) != 1) return std::nullopt;
  StatusReply reply;
  std::vector<Descriptor> memory;
  if (receive_packet(job.socket, std::as_writable_bytes(std::span(&reply, 1)), memory, 1) !=
          PacketStatus::done ||
      memory.size() != 1 || reply.bytes > most_bytes)
    return std::nullopt;
  if (reply.version != StatusReply::current_version)
    throw Error(Code::invalid_usage,
                fmt::format("job {} speaks version {} of the status, this program version {}; use "
                            "the khoro that started it",
                            job.pid, reply.version, StatusReply::current_version));
  std::string text(reply.bytes, ' ');
  const auto size = ::pread(memory.front().number(), text.data(), text.size(), 0);
  if (size != static_cast<ssize_t>(text.size())) return std::nullopt;
  return text;
}

void ask(std::vector<JobFound>& jobs) {
  const Time until = machine().now() + patience;
  for (JobFound& job : jobs) {
    const auto text = receive(job, until);
    auto said = text ? ordered_json::parse(*text, nullptr, false) : ordered_json();
    if (said.is_object()) job.said = std::move(said);
  }
}

std::string why_silent(const JobFound& job) {
  const auto stat = stat_of(job.pid);
  if (stat && stat->stopped()) return "its launcher is stopped, so it cannot answer";
  return stat ? "its launcher did not answer" : "it has just ended";
}

/// As text that a terminal may show: root looks at what others wrote.
std::string shown(const ordered_json& object, const char* key) {
  const auto value = object.find(key);
  if (value == object.end()) return "?";
  std::string text = value->is_string() ? value->get<std::string>() : value->dump();
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = '?';
  return text;
}

int number(const ordered_json& object, const char* key) {
  const auto value = object.find(key);
  return value != object.end() && value->is_number_integer() ? value->get<int>() : 0;
}

void print_list(const std::vector<JobFound>& jobs) {
  if (jobs.empty()) {
    fmt::print("no job of this user runs here\n");
    return;
  }
  Table table({"job", "ranks", "since", "program"});
  for (const JobFound& job : jobs)
    if (job.said)
      table.add({std::to_string(job.pid), shown(*job.said, "ranks"), shown(*job.said, "since"),
                 shown(*job.said, "program")});
    else
      table.add({std::to_string(job.pid), "?", "?", why_silent(job)});
  fmt::print("{}", table.text());
}

void print_list_json(const std::vector<JobFound>& jobs) {
  ordered_json all = {{"version", 1}, {"jobs", ordered_json::array()}};
  for (const JobFound& job : jobs) {
    ordered_json entry = {{"pid", job.pid}, {"answers", job.said.has_value()}};
    for (const char* key : {"program", "ranks", "processes", "running", "since"})
      if (job.said && job.said->contains(key)) entry[key] = (*job.said)[key];
    all["jobs"].push_back(std::move(entry));
  }
  fmt::print("{}\n", all.dump(2));
}

void print_communicator(const ordered_json& communicator) {
  fmt::print("\ncommunicator {}, {} ranks: {}\n", shown(communicator, "number"),
             shown(communicator, "ranks"), shown(communicator, "headline"));
  std::vector<RankAccount> ranks;
  for (const ordered_json& member : communicator.value("members", ordered_json::array())) {
    RankAccount& rank = ranks.emplace_back();
    rank.rank = number(member, "rank");
    rank.pid = number(member, "pid");
    rank.finished = shown(member, "last_finished");
    rank.under_way = shown(member, "under_way");
    rank.detail = shown(member, "verdict") + " " + shown(member, "detail");
  }
  Table table({"ranks", "process", "last finished", "not finished", "verdict"});
  for (const RankGroup& each : group(ranks))
    table.add({list_of(each.ranks), each.account.pid ? std::to_string(each.account.pid) : "-",
               each.account.finished, each.account.under_way, each.account.detail});
  fmt::print("{}", table.text());
  const auto failure = communicator.find("failure");
  if (failure != communicator.end() && failure->is_object())
    fmt::print("it failed, as rank {} said: {}\n", shown(*failure, "rank"),
               shown(*failure, "words"));
}

void print_job(const ordered_json& job) {
  fmt::print("job {}: {}, {} ranks in {} processes of which {} run, since {}\n", shown(job, "pid"),
             shown(job, "program"), shown(job, "ranks"), shown(job, "processes"),
             shown(job, "running"), shown(job, "since"));
  const auto communicators = job.value("communicators", ordered_json::array());
  if (communicators.empty()) fmt::print("no rank has joined a communicator\n");
  for (const ordered_json& communicator : communicators) print_communicator(communicator);
}

int show_all(Format format) {
  auto jobs = find_jobs(0);
  ask(jobs);
  format == Format::json ? print_list_json(jobs) : print_list(jobs);
  return succeeded;
}

int show_one(pid_t pid, Format format) {
  auto jobs = find_jobs(pid);
  ask(jobs);
  if (jobs.empty() || !jobs.front().said) {
    fmt::print(stderr, "khoro status: {}\n",
               jobs.empty() ? fmt::format("no job {} of this user runs here; `khoro status` lists "
                                          "those that do",
                                          pid)
                            : fmt::format("job {}: {}", pid, why_silent(jobs.front())));
    return found_something;
  }
  const ordered_json& job = *jobs.front().said;
  if (format == Format::json)
    fmt::print("{}\n", job.dump(2));
  else
    print_job(job);
  return succeeded;
}

}  // namespace

void add_status(CLI::App& program, int& status) {
  struct Choice {
    int pid = 0;
    Format format = Format::text;
  };
  CLI::App* command = program.add_subcommand("status", "Show the jobs that `khoro run` runs now");
  auto choice = std::make_shared<Choice>();  // lives as long as the command
  command->add_option("job", choice->pid, "the process of one launcher: show what its ranks do")
      ->check(CLI::Range(1, 1 << 30))
      ->type_name("JOB");
  add_format(*command, choice->format);
  command->callback([choice, &status] {
    status = choice->pid ? show_one(choice->pid, choice->format) : show_all(choice->format);
  });
}

}  // namespace khoro::tool
