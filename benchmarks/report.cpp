// SPDX-License-Identifier: Apache-2.0
#include "report.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <khoro/khoro.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>

#include "ranks.h"

namespace khoro::benchmark {
namespace {

std::string now() {
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(std::time(nullptr)));
}

/// A number in `width` characters, with as many digits after the point as fit.
std::string fitted(double value, int width) {
  int digits = 0;
  for (double power = 1; value >= power; power *= 10) ++digits;
  if (digits < width - 2) return fmt::format("{:{}.2f}", value, width);
  if (digits < width - 1) return fmt::format("{:{}.1f}", value, width);
  if (digits <= width) return fmt::format("{:{}.0f}", value, width);
  return fmt::format("{:{}.0e}", value, width);
}

std::string half(const std::optional<Result>& measured) {
  if (!measured) return fmt::format("  {:>7}  {:>6}  {:>6}  {:>6}", "N/A", "N/A", "N/A", "N/A");
  const Result& result = *measured;
  return fmt::format("  {}  {}  {}  {:>6}", fitted(result.seconds * 1e6, 7),
                     fitted(result.algorithm_bandwidth, 6), fitted(result.bus_bandwidth, 6),
                     result.wrong ? std::to_string(*result.wrong) : "N/A");
}

std::string latency(const std::optional<Result>& measured) {
  if (!measured) return fmt::format("  {:>7}  {:>7}  {:>7}", "N/A", "N/A", "N/A");
  const Latency& latency = *measured->latency;
  return fmt::format("  {}  {}  {}", fitted(latency.p50 * 1e6, 7), fitted(latency.p99 * 1e6, 7),
                     fitted(latency.most * 1e6, 7));
}

/// What memory allows, and how much of that the call reaches.
std::string limit(const std::optional<Result>& measured) {
  if (!measured) return fmt::format("  {:>7}  {:>5}", "N/A", "N/A");
  const double limit = *measured->limit;
  return fmt::format("  {}  {:5.1f}", fitted(limit * 1e6, 7), 100 * limit / measured->seconds);
}

nlohmann::ordered_json latency_json(const std::optional<Latency>& measured) {
  if (!measured) return nullptr;
  return {
      {"p50", measured->p50 * 1e6}, {"p99", measured->p99 * 1e6}, {"max", measured->most * 1e6}};
}

nlohmann::ordered_json half_json(const std::optional<Result>& measured, bool cpu_time) {
  if (!measured) return nullptr;
  const Result& result = *measured;
  nlohmann::ordered_json json{{cpu_time ? "cpu_time" : "time", result.seconds * 1e6},
                              {"alg_bw", result.algorithm_bandwidth},
                              {"bus_bw", result.bus_bandwidth},
                              {"nwrong", nullptr},
                              {"wrong_ranks", result.wrong_ranks},
                              {"latency", latency_json(result.latency)},
                              {"limit", nullptr}};
  if (result.limit) json["limit"] = *result.limit * 1e6;
  if (result.wrong) json["nwrong"] = *result.wrong;
  return json;
}

const char* word(bool value) { return value ? "true" : "false"; }

/// As nccl-tests have it: "device  3 [0000:1b:00.0] NVIDIA H200".
std::string words_of(const Seat& seat) {
  const std::string name = seat.name;
  const std::size_t at = name.rfind(" at ");
  if (seat.device < 0 || at == std::string::npos) return name;
  return fmt::format("device {:2} [{}] {}", seat.device, name.substr(at + 4), name.substr(0, at));
}

nlohmann::ordered_json config_json(const Options& options, const Report::Start& start,
                                   const std::string& host) {
  nlohmann::ordered_json config{{"nthreads", start.threads},
                                {"ngpus", 1},
                                {"minimum_bytes", options.min_bytes},
                                {"maximum_bytes", options.max_bytes}};
  if (options.step_factor > 1)
    config["step_factor"] = options.step_factor;
  else
    config["step_bytes"] = options.step_bytes;
  config.update({{"warmup_iters", options.warmups},
                 {"iterations", options.iterations},
                 {"aggregated_iterations", options.aggregate},
                 {"validation", options.checks},
                 {"graph", 0},
                 {"blocking_collectives", word(options.blocking)},
                 {"parallel_init", word(options.parallel_init)},
                 {"average", static_cast<int>(options.average)},
                 {"run_cycles", options.cycles},
                 {"local_register", options.registers ? 1 : 0},
                 {"latency", word(options.latency)}});
  for (std::size_t rank = 0; rank < start.seats.size(); ++rank) {
    const Seat& seat = start.seats[rank];
    nlohmann::ordered_json device{{"rank", rank},        {"group", 0},
                                  {"pid", seat.process}, {"hostname", host},
                                  {"device", nullptr},   {"device_info", seat.name}};
    if (seat.device >= 0) device["device"] = seat.device;
    config["devices"].push_back(std::move(device));
  }
  return config;
}

std::string host_name() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

}  // namespace

Report::Report(const Options& options, const Start& start)
    : options_(options), program_(start.program) {
  int version = 0;
  check(khoroGetVersion(&version), "khoroGetVersion");
  json_ = {{"version", 2},
           {"start_time", now()},
           {"args", start.arguments},
           {"env", start.environment},
           {"nccl_version", nullptr},
           {"khoro_version", version},
           {"ranks", start.seats.size()}};
  json_["config"] = config_json(options, start, host_name());
  json_["results"] = nlohmann::ordered_json::array();
  if (!options.json_file.empty()) open_json();
  print_head(start);
}

void Report::open_json() {
  std::string path = options_.json_file;
  for (int number = 0;; ++number) {
    file_.reset(std::fopen(path.c_str(), "wx"));
    if (file_) break;
    if (errno != EEXIST)
      throw Failure(fmt::format("-J: cannot write {}: {}", path, std::strerror(errno)));
    path = fmt::format("{}.{}", options_.json_file, number);
  }
  fmt::print("# Writing JSON output to {}\n", path);
}

void Report::print_head(const Start& start) {
  fmt::print("# Collective test starting: {}\n", program_);
  fmt::print(
      "# nThread {} nGpus 1 minBytes {} maxBytes {} step: {}({}) warmup iters: {} iters: {} agg "
      "iters: {} validation: {} graph: 0\n",
      start.threads, options_.min_bytes, options_.max_bytes,
      options_.step_factor > 1 ? options_.step_factor : options_.step_bytes,
      options_.step_factor > 1 ? "factor" : "bytes", options_.warmups, options_.iterations,
      options_.aggregate, options_.checks);
  if (options_.blocking) fmt::print("# Blocking Enabled: a barrier after each collective\n");
  if (options_.registers) fmt::print("# Buffers: khoroMemAlloc, registered\n");
  if (options_.parallel_init) fmt::print("# Parallel Init Enabled: each thread joins by itself\n");
  fmt::print("#\n# Using devices\n");
  for (std::size_t rank = 0; rank < start.seats.size(); ++rank) {
    const Seat& seat = start.seats[rank];
    fmt::print("#  Rank {:2} Group  0 Pid {:6} on {:>10} {}\n", rank, seat.process, host_name(),
               words_of(seat));
  }
  print_columns();
  std::fflush(stdout);
}

void Report::print_columns() {
  const char* time = options_.cpu_time ? "cputime" : "time";
  fmt::print("#\n# {:10}  {:12}  {:8}  {:6}  {:6}{:>22}{:>31}", "", "", "", "", "", "out-of-place",
             "in-place");
  if (options_.limits) fmt::print("{:>18}{:>16}", "out-of-place", "in-place");
  if (options_.latency) fmt::print("{:>31}{:>27}", "out-of-place latency", "in-place latency");
  fmt::print("\n# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}", "size", "count", "type", "redop", "root");
  for (int i = 0; i < 2; ++i)
    fmt::print("  {:>7}  {:>6}  {:>6}  {:>6}", time, "algbw", "busbw", "#wrong");
  for (int i = 0; options_.limits && i < 2; ++i) fmt::print("  {:>7}  {:>5}", "limit", "of it");
  for (int i = 0; options_.latency && i < 2; ++i)
    fmt::print("  {:>7}  {:>7}  {:>7}", "p50", "p99", "max");
  fmt::print("{}\n", options_.timestamps ? fmt::format("{:>21}", "timestamp") : "");
  fmt::print("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}", "(B)", "(elements)", "", "", "");
  for (int i = 0; i < 2; ++i)
    fmt::print("  {:>7}  {:>6}  {:>6}  {:>6}", "(us)", "(GB/s)", "(GB/s)", "");
  for (int i = 0; options_.limits && i < 2; ++i) fmt::print("  {:>7}  {:>5}", "(us)", "(%)");
  for (int i = 0; options_.latency && i < 2; ++i)
    fmt::print("  {:>7}  {:>7}  {:>7}", "(us)", "(us)", "(us)");
  fmt::print("\n");
}

void Report::add(const Row& row) {
  fmt::print("{:12}  {:12}  {:>8}  {:>6}  {:6}{}{}", row.bytes, row.count, row.type, row.op,
             row.root, half(row.out_of_place), half(row.in_place));
  if (options_.limits) fmt::print("{}{}", limit(row.out_of_place), limit(row.in_place));
  if (options_.latency) fmt::print("{}{}", latency(row.out_of_place), latency(row.in_place));
  fmt::print("{}\n", options_.timestamps ? fmt::format("{:>21}", now()) : "");
  for (const std::string& words : complaints_) fmt::print("# {}\n", words);
  complaints_.clear();
  std::fflush(stdout);
  json_["results"].push_back(
      {{"size", row.bytes},
       {"count", row.count},
       {"type", row.type},
       {"redop", row.op},
       {"root", std::to_string(row.root)},
       {"out_of_place", half_json(row.out_of_place, options_.cpu_time)},
       {"in_place", half_json(row.in_place, options_.cpu_time)},
       {"actual_iterations", options_.iterations * static_cast<std::int64_t>(options_.aggregate)},
       {"experiment_name", program_}});
}

void Report::complain(const std::string& words) {
  complaints_.push_back(words);
  json_["errors"].push_back(words);
}

void Report::skip(const std::string& words) {
  fmt::print("# {}\n", words);
  json_["skipped"] = words;
}

void Report::end(std::uint64_t wrong_rows, double average_bus_bandwidth) {
  fmt::print("# {:<20} : {} {}\n", "Out of bounds values", wrong_rows,
             wrong_rows ? "FAILED" : "OK");
  fmt::print("# {:<20} : {:g}\n#\n", "Avg bus bandwidth", average_bus_bandwidth);
  fmt::print("# Collective test concluded: {}\n", program_);
  std::fflush(stdout);
  json_["out_of_bounds"] = {{"count", wrong_rows}, {"okay", word(wrong_rows == 0)}};
  json_["average_bus_bandwidth"] = {{"bandwidth", average_bus_bandwidth}, {"okay", "unchecked"}};
}

Report::~Report() {
  if (!file_) return;
  if (!json_.contains("errors")) json_["errors"] = nlohmann::ordered_json::array();
  json_["end_time"] = now();
  fmt::print(file_.get(), "{}\n", json_.dump(1));
}

}  // namespace khoro::benchmark
