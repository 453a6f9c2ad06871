// SPDX-License-Identifier: Apache-2.0
#include "options.h"

#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace khoro::benchmark {
namespace {

std::size_t read_size(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const std::string unit(end);
  double factor = 1;
  if (unit == "K" || unit == "k") factor = 1024.0;
  if (unit == "M" || unit == "m") factor = 1024.0 * 1024;
  if (unit == "G" || unit == "g") factor = 1024.0 * 1024 * 1024;
  const double bytes = number * factor;
  if (end == text.c_str() || (factor == 1 && !unit.empty()) || !(bytes >= 0 && bytes < 0x1p62))
    throw CLI::ValidationError("'" + text + "' is no size: a number, then K, M, G or nothing");
  return static_cast<std::size_t>(bytes);
}

template <class Row>
std::string names(std::span<const Row> rows) {
  std::vector<std::string_view> names;
  for (const Row& row : rows) names.push_back(row.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

/// The rows that `word` names: one, or all of them.
template <class Row>
std::vector<Row> choose(std::span<const Row> rows, const std::string& what,
                        const std::string& word) {
  if (word == "all") return {rows.begin(), rows.end()};
  for (const Row& row : rows) {
    if (row.name == word) return {row};
  }
  throw CLI::ValidationError(
      fmt::format("Khoro has no {} '{}': choose one of {}, all", what, word, names(rows)));
}

int read_root(const std::string& text) {
  if (text == "all") return Options::all_roots;
  char* end = nullptr;
  const long root = std::strtol(text.c_str(), &end, 10);
  if (end == text.c_str() || *end || root < -1 || root > std::numeric_limits<int>::max())
    throw CLI::ValidationError("'" + text + "' is no root: a rank, or -1 or all for each in turn");
  return static_cast<int>(root);
}

/// Flags of nccl-tests that ask for what is not there. Their neutral value is accepted.
struct Refused {
  const char* flags;
  const char* neutral;
  const char* reason;
};

constexpr Refused refused[] = {
    {"-g,--ngpus", "1", "a rank has one GPU at most; use -t, or khoro run -n P --threads T"},
    {"-G,--cudagraph", "0", "calls go into no graphs"},
    {"-x,--cta_policy", "0", "Khoro chooses the blocks of a call"},
    {"-D,--device_implementation", "0", "kernels of callers call nothing of Khoro's"},
    {"-V,--device_cta_count", "0", "kernels of callers call nothing of Khoro's"},
    {"-M,--memory_report", "0", "there is no memory report yet"},
    {"-u,--unalign", "0", "buffers are always aligned to pages"},
};

struct DeviceRow {
  std::string_view name;
  khoroMemory_t memory;
};
constexpr DeviceRow devices[] = {
    {"host", khoroMemoryHost}, {"cuda", khoroMemoryCuda}, {"virtual", khoroMemoryVirtual}};

void add_refused(CLI::App& app) {
  for (const Refused& flag : refused) {
    const std::string help = fmt::format("only {}: {}", flag.neutral, flag.reason);
    app.add_option_function<std::string>(
           flag.flags,
           [flag](const std::string& value) {
             if (value != flag.neutral)
               throw CLI::ValidationError(
                   fmt::format("{} {} is not supported: {}", flag.flags, value, flag.reason));
           },
           help)
        ->type_name("N");
  }
}

void add_size(CLI::App& app, const char* flags, std::size_t& into, const char* help) {
  app.add_option_function<std::string>(
         flags, [&into](const std::string& text) { into = read_size(text); }, help)
      ->type_name("SIZE");
}

void add_scan(CLI::App& app, Options& options) {
  add_size(app, "-b,--minbytes", options.min_bytes, "smallest size (32M)");
  add_size(app, "-e,--maxbytes", options.max_bytes, "largest size (32M)");
  add_size(app, "-i,--stepbytes", options.step_bytes, "added from size to size (1M)");
  app.add_option("-f,--stepfactor", options.step_factor, "multiplies from size to size (1: add)")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 40))
      ->type_name("N");
}

void add_loops(CLI::App& app, Options& options) {
  const auto add = [&app](const char* flags, auto& into, int least, const char* help) {
    app.add_option(flags, into, help)
        ->check(CLI::Range(least, std::numeric_limits<int>::max()))
        ->type_name("N");
  };
  add("-t,--nthreads", options.threads, 1, "ranks of this process, each a thread (1)");
  add("-n,--iters", options.iterations, 1, "timed iterations (20)");
  add("-w,--warmup_iters", options.warmups, 0, "iterations before each size, not timed (5)");
  add("-m,--agg_iters", options.aggregate, 1, "calls in one group per iteration (1)");
  add("-N,--run_cycles", options.cycles, 0, "repeats the scan; 0: without end (1)");
  add("-c,--check", options.checks, 0, "checked calls per size; 0: none (1)");
  add("-T,--timeout", options.timeout_s, 0, "deadline of a call in seconds; 0: Khoro's (0)");
}

void add_choices(CLI::App& app, Options& options, int& average) {
  app.add_option_function<std::string>(
         "-o,--op",
         [&options](const std::string& word) { options.ops = choose(ops(), "reduction", word); },
         names(ops()) + " or all; only for reductions (sum)")
      ->type_name("OP");
  app.add_option_function<std::string>(
         "-d,--datatype",
         [&options](const std::string& word) { options.types = choose(types(), "type", word); },
         names(types()) + " or all (float)")
      ->type_name("TYPE");
  app.add_option_function<std::string>(
         "-r,--root", [&options](const std::string& text) { options.root = read_root(text); },
         "root, or -1 or all for each rank in turn; only for collectives that have one (0)")
      ->type_name("N");
  const auto add_switch = [&app](const char* flags, bool& into, const char* help) {
    app.add_option(flags, into, help)->type_name("0|1");
  };
  app.add_option_function<std::string>(
         "--device",
         [&options](const std::string& word) {
           for (const DeviceRow& row : devices)
             if (row.name == word) return void(options.device = row.memory);
           throw CLI::ValidationError(fmt::format("there are no devices '{}': choose one of {}",
                                                  word,
                                                  names(std::span<const DeviceRow>(devices))));
         },
         "memory of the calls: of the host, of GPUs, or of virtual GPUs (host)")
      ->type_name("host|cuda|virtual");
  add_switch("-p,--parallel_init", options.parallel_init, "each thread joins by itself (0)");
  add_switch("-z,--blocking", options.blocking, "a barrier after each call (0)");
  add_switch("-C,--report_cputime", options.cpu_time, "time used by the CPU, not by the clock (0)");
  add_switch("-S,--report_timestamps", options.timestamps, "when each row was measured (0)");
  app.add_option_function<int>(
         "-y,--stream_null", [&options](int value) { options.null_stream = value == 1; },
         "calls without a stream, which block; on GPUs (0), on hosts always (1)")
      ->check(CLI::Range(0, 1))
      ->type_name("0|1");
  app.add_option("-a,--average", average, "time of 0: rank 0, 1: mean, 2: least, 3: most (1)")
      ->check(CLI::Range(0, 3))
      ->type_name("0|1|2|3");
  app.add_option_function<std::string>(
         "--transport",
         [](const std::string& name) { ::setenv("KHORO_TRANSPORT", name.c_str(), 1); },
         "what carries the messages: sets KHORO_TRANSPORT (auto)")
      ->type_name("NAME");
  app.add_option_function<int>(
         "-R,--local_register", [&options](int value) { options.registers = value == 1; },
         "buffers of khoroMemAlloc, registered with the communicator (0)")
      ->check(CLI::Range(0, 1))
      ->type_name("0|1");
  app.add_flag(
      "--limits", options.limits,
      "what memory allows: how long all ranks together take to read as many bytes as a call "
      "has of input, and to write as many as it has of output");
  app.add_flag("--latency", options.latency,
               "p50, p99 and maximum of the single calls, each as long as on its slowest rank");
  app.add_option("-J,--output_file", options.json_file, "writes the table as JSON too")
      ->type_name("FILE");
}

bool any_applies(const Options& options) {
  for (const OpRow& op : options.ops)
    for (const TypeRow& type : options.types)
      if (applies(op, type)) return true;
  return false;
}

/// What there is on memory of one kind alone.
void check_device(const Options& options) {
  const bool host = options.device == khoroMemoryHost;
  if (host && options.null_stream == false)
    throw CLI::ValidationError("-y 0: calls on memory of the host are made without a stream here");
  if (!host && options.registers)
    throw CLI::ValidationError("-R 1: khoroMemAlloc gives memory of the host; not with --device");
  if (!host && options.limits)
    throw CLI::ValidationError("--limits shows what memory of the host allows; not with --device");
}

}  // namespace

std::string_view word_of(khoroMemory_t memory) noexcept {
  return devices[static_cast<unsigned>(memory)].name;
}

std::optional<std::size_t> Options::after(std::size_t bytes) const noexcept {
  std::size_t next = 0;
  const bool overflow = step_factor > 1 ? __builtin_mul_overflow(bytes, step_factor, &next)
                                        : __builtin_add_overflow(bytes, step_bytes, &next);
  if (overflow || next > max_bytes) return std::nullopt;
  return next;
}

std::optional<Options> read_options(const std::string& program, int argc, char** argv,
                                    int& exit_code) {
  CLI::App app("Measures a collective and checks its results, as nccl-tests do.", program);
  Options options;
  options.types = choose(types(), "type", "float");
  options.ops = choose(ops(), "reduction", "sum");
  int average = static_cast<int>(options.average);
  add_scan(app, options);
  add_loops(app, options);
  add_choices(app, options, average);
  add_refused(app);
  try {
    app.parse(argc, argv);
    if (!any_applies(options))
      throw CLI::ValidationError("-o works on the bits of integers: choose an integer type by -d");
    check_device(options);
    if (options.min_bytes > options.max_bytes)
      throw CLI::ValidationError("-b is larger than -e: nothing to measure");
    if (options.step_factor == 1 && options.step_bytes == 0)
      throw CLI::ValidationError("-i 0: the scan would never end");
    if (options.step_factor > 1 && options.min_bytes == 0)
      throw CLI::ValidationError("-b 0 with -f: the scan would never end");
  } catch (const CLI::ParseError& error) {
    exit_code = app.exit(error) == 0 ? 0 : 2;
    return std::nullopt;
  }
  options.average = static_cast<Average>(average);
  return options;
}

}  // namespace khoro::benchmark
