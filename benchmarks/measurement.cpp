// SPDX-License-Identifier: Apache-2.0
#include "measurement.h"

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>

#include "ranks.h"

namespace khoro::benchmark {
namespace {

double thread_cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double combine(const std::vector<Sample>& samples, Average how, double Sample::*member) {
  const auto less = [&](const Sample& a, const Sample& b) { return a.*member < b.*member; };
  switch (how) {
    case Average::rank_0:
      return samples.front().*member;
    case Average::least:
      return (*std::min_element(samples.begin(), samples.end(), less)).*member;
    case Average::most:
      return (*std::max_element(samples.begin(), samples.end(), less)).*member;
    case Average::mean:
      break;
  }
  double sum = 0;
  for (const Sample& sample : samples) sum += sample.*member;
  return sum / static_cast<double>(samples.size());
}

/// All ranks may share one machine: refuse what it cannot hold before it kills somebody.
void check_memory(std::size_t bytes, int ranks) {
  const double machine = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  if (static_cast<double>(bytes) * ranks > 0.9 * machine) {
    throw Failure(
        fmt::format("-e: the buffers of {} ranks need {} bytes each, more than this "
                    "machine has ({:.0f}); choose a smaller -e",
                    ranks, bytes, machine));
  }
}

/// Reads and writes so many bytes, in one loop as far as there are both. What is written is not
/// what is read, or the compiler would call memcpy, which may have other stores than a reduction
/// has.
void pass_over(const std::byte* in, std::size_t in_bytes, std::byte* out, std::size_t out_bytes) {
  constexpr std::size_t unit = 8;
  using Word = std::uint64_t;
  const auto* const read = reinterpret_cast<const Word*>(in);
  auto* const written = reinterpret_cast<Word*>(out);
  const std::size_t reads = in_bytes / sizeof(Word), writes = out_bytes / sizeof(Word);
  std::size_t at = 0;
  for (; at + unit <= std::min(reads, writes); at += unit) {
    Word words[unit];
    for (std::size_t i = 0; i < unit; ++i) words[i] = ~read[at + i];
    for (std::size_t i = 0; i < unit; ++i) written[at + i] = words[i];
  }
  for (std::size_t i = at; i < writes; ++i) written[i] = i;
  Word sum = 0;
  for (std::size_t i = at; i < reads; ++i) sum += read[i];
  asm volatile("" : : "r"(sum) : "memory");
}

/// The nearest rank: at least so many of a hundred are no larger.
double percentile(const std::vector<double>& sorted, std::size_t percent) {
  return sorted[(sorted.size() * percent + 99) / 100 - 1];
}

}  // namespace

Measurement::Measurement(const Collective& collective, const Options& options, khoroComm_t comm,
                         Subject& subject, Report* report)
    : collective_(collective), options_(options), comm_(comm), subject_(subject), report_(report) {
  check(khoroCommUserRank(comm, &rank_), "khoroCommUserRank", comm);
  check(khoroCommCount(comm, &ranks_), "khoroCommCount", comm);
  if (collective.rooted && options.root >= ranks_)
    throw Failure(
        fmt::format("-r {}: the last of {} ranks is {}", options.root, ranks_, ranks_ - 1));
  for (khoroComm_t one : {comm, subject.comm()})
    if (options.timeout_s > 0)
      check(khoroCommSetDeadline(one, options.timeout_s * 1000), "khoroCommSetDeadline", one);
  const Extent largest = extent(options.max_bytes, 1);
  const std::size_t copies = options.device == khoroMemoryVirtual ? 2 : 1;  // here, and on the GPU
  check_memory(copies * Memory::bytes(largest), ranks_);
  memory_.emplace(largest, options.registers ? Kind::of_khoro : Kind::of_process, subject.gpu());
  for (Buffer* const buffer : memory_->buffers()) {
    if (!options.registers) break;
    registrations_.push_back(nullptr);
    check(khoroCommRegister(comm, buffer->memory(), buffer->bytes(), &registrations_.back()),
          "khoroCommRegister", comm);
  }
  if (options.latency) durations_.resize(options.iterations);
}

Measurement::~Measurement() {
  for (void* const registration : registrations_) (void)khoroCommDeregister(comm_, registration);
}

Extent Measurement::extent(std::size_t bytes, std::size_t element_bytes) const {
  return collective_.extent(bytes / element_bytes, ranks_);
}

bool Measurement::run() {
  try {
    return run_all();
  } catch (...) {
    subject_.abort();
    throw;
  }
}

/// Empty if there is something to measure.
std::string Measurement::why_skipped() const {
  if (collective_.powers_of_two_only && (ranks_ & (ranks_ - 1)) != 0)
    return fmt::format("nRanks {} is not a power of 2, skipping", ranks_);
  return {};
}

bool Measurement::run_all() {
  const std::string skipped = why_skipped();
  if (!skipped.empty() && report_) report_->skip(skipped);
  for (int cycle = 0; skipped.empty() && (options_.cycles == 0 || cycle < options_.cycles); ++cycle)
    run_cycle();
  const double average = bandwidths_ ? bandwidth_sum_ / static_cast<double>(bandwidths_) : 0;
  if (report_) report_->end(wrong_halves_, average);
  return wrong_halves_ == 0;
}

void Measurement::run_cycle() {
  // What a collective has not, its results do not depend on.
  std::vector<TypeRow> types{{"none", khoroInt32, sizeof(std::int32_t)}};
  std::vector<OpRow> ops{{"none", khoroSum, false}};
  std::vector<int> roots{-1};
  if (collective_.moves_data) types = options_.types;
  if (collective_.reduces) ops = options_.ops;
  if (collective_.rooted) roots = {options_.root};
  if (collective_.rooted && options_.root == Options::all_roots) {
    roots.resize(ranks_);
    std::iota(roots.begin(), roots.end(), 0);
  }
  for (const TypeRow& type : types)
    for (const OpRow& op : ops)
      for (const int root : roots)
        if (applies(op, type)) scan({type, op, root});
}

void Measurement::scan(const Scan& scan) {
  const auto add = [&](std::size_t bytes) {
    const Row row = measure_row(bytes, scan);
    if (report_) report_->add(row);
  };
  if (!collective_.moves_data) return add(0);
  for (std::optional<std::size_t> bytes = options_.min_bytes; bytes; bytes = options_.after(*bytes))
    add(*bytes);
}

Row Measurement::measure_row(std::size_t bytes, const Scan& scan) {
  const Extent sizes = extent(bytes, scan.type.bytes);
  Case test{
      sizes, {scan.type, scan.op.op, ranks_, 0}, {rank_, ranks_, scan.root}, Form::out_of_place};
  Row row{std::max(sizes.send, sizes.recv) * scan.type.bytes,
          sizes.count,
          scan.type.name,
          scan.op.name,
          scan.root,
          measure(test),
          std::nullopt};
  test.form = Form::in_place;
  if (collective_.in_place) row.in_place = measure(test);
  return row;
}

Result Measurement::measure(const Case& test) {
  const std::vector<Sample> times = gather(time(prepare(test)));
  Result result{};
  result.seconds =
      combine(times, options_.average, options_.cpu_time ? &Sample::cpu_seconds : &Sample::seconds);
  const std::size_t bytes = std::max(test.sizes.send, test.sizes.recv) * test.draw.type.bytes;
  result.algorithm_bandwidth = static_cast<double>(bytes) / 1e9 /
                               combine(times, options_.average, &Sample::seconds) *
                               collective_.algorithm_factor(ranks_);
  result.bus_bandwidth = result.algorithm_bandwidth * collective_.bus_factor(ranks_);
  bandwidth_sum_ += result.bus_bandwidth;
  ++bandwidths_;
  if (options_.latency) result.latency = slowest_of_ranks();
  if (options_.limits)
    result.limit = combine(gather(time_limit(test)), options_.average, &Sample::seconds);
  for (int k = 0; k < options_.checks && result.wrong.value_or(0) == 0; ++k) {
    Case fresh = test;
    fresh.draw.seed = ++calls_checked_;
    verify(fresh, result);
  }
  return result;
}

Call Measurement::prepare(const Case& test) {
  const Memory::Addresses at = memory_->prepare(test);
  const TypeRow& type = test.draw.type;
  return {
      at.send,      at.recv,         test.sizes.count,  test.sizes.count * type.bytes, type.type,
      test.draw.op, subject_.comm(), subject_.stream(), subject_.gpu().stream,         test.at};
}

void Measurement::once(const Call& call, int calls) {
  if (calls > 1) check(khoroGroupStart(), "khoroGroupStart", call.comm);
  for (int k = 0; k < calls; ++k) {
    check(collective_.run(call), collective_.program, call.comm);
    if (options_.blocking && calls == 1) check(khoroBarrier(comm_, nullptr), "khoroBarrier", comm_);
  }
  if (calls == 1) return;
  check(khoroGroupEnd(), "khoroGroupEnd", call.comm);
  if (options_.blocking) check(khoroBarrier(comm_, nullptr), "khoroBarrier", comm_);
}

Sample Measurement::time(const Call& call) {
  for (int k = 0; k < options_.warmups; ++k) once(call, options_.aggregate);
  subject_.finish();
  check(khoroBarrier(comm_, nullptr), "khoroBarrier", comm_);
  const double cpu_start = thread_cpu_seconds();
  const auto start = Clock::now();
  double elapsed = 0;
  for (int k = 0; k < options_.iterations; ++k) {
    once(call, options_.aggregate);
    if (!options_.latency) continue;
    durations_[k] = seconds_since(start) - elapsed;
    elapsed += durations_[k];
  }
  // What a rank does for calls on a stream is that it queues them.
  const double cpu = call.stream ? seconds_since(start) : thread_cpu_seconds() - cpu_start;
  subject_.finish();
  if (!options_.latency) elapsed = seconds_since(start);
  const double calls = static_cast<double>(options_.iterations) * options_.aggregate;
  return {elapsed / calls, cpu / calls, 0, 0};
}

Latency Measurement::slowest_of_ranks() {
  check(khoroAllReduce(durations_.data(), durations_.data(), durations_.size(), khoroFloat64,
                       khoroMax, comm_, nullptr),
        "khoroAllReduce", comm_);
  std::sort(durations_.begin(), durations_.end());
  const double calls = options_.aggregate;
  return {percentile(durations_, 50) / calls, percentile(durations_, 99) / calls,
          durations_.back() / calls};
}

/// Each byte of the input is read once and each of the output written once, in place where the call
/// is, by all ranks at a time.
Sample Measurement::time_limit(const Case& test) {
  const Memory::Addresses at = memory_->prepare(test);
  const std::size_t width = test.draw.type.bytes;
  check(khoroBarrier(comm_, nullptr), "khoroBarrier", comm_);
  const auto start = Clock::now();
  for (int k = 0; k < options_.iterations; ++k)
    pass_over(at.send, test.sizes.send * width, at.recv, test.sizes.recv * width);
  return {seconds_since(start) / options_.iterations, 0, 0, 0};
}

void Measurement::verify(const Case& test, Result& result) {
  const Wrong mine = collective_.moves_data ? verify_data(test) : verify_order(prepare(test));
  const auto samples =
      gather({0, 0, static_cast<double>(mine.count), static_cast<double>(mine.first)});
  result.wrong = 0;
  for (int rank = 0; rank < ranks_; ++rank) {
    if (samples[rank].wrong == 0) continue;
    *result.wrong += static_cast<std::uint64_t>(samples[rank].wrong);
    result.wrong_ranks.push_back(rank);
  }
  if (*result.wrong == 0) return;
  ++wrong_halves_;
  complain(samples, test);
}

Wrong Measurement::verify_data(const Case& test) {
  once(prepare(test), 1);
  subject_.finish();
  memory_->fetch(test);
  if (options_.flip_byte == rank_) memory_->flip_byte(test);
  return memory_->inspect(test, collective_.expect(test.sizes, test.at));
}

/// Each rank is late once, so that one which does not wait for it is seen to leave too early.
/// Counts how often this rank did. The ranks' clock is that of their machine.
Wrong Measurement::verify_order(const Call& call) {
  Wrong early;
  for (int late = 0; late < ranks_; ++late) {
    if (late == rank_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::int64_t last_to_come = Clock::now().time_since_epoch().count();
    once(call, 1);
    subject_.finish();
    std::int64_t left = Clock::now().time_since_epoch().count();
    if (options_.flip_byte == rank_) left ^= std::int64_t{0xff} << 56;
    check(khoroAllReduce(&last_to_come, &last_to_come, 1, khoroInt64, khoroMax, comm_, nullptr),
          "khoroAllReduce", comm_);
    early.count += left < last_to_come;
  }
  return early;
}

std::vector<Sample> Measurement::gather(const Sample& mine) {
  constexpr std::size_t doubles = sizeof(Sample) / sizeof(double);
  std::vector<Sample> all(ranks_);
  check(khoroAllGather(&mine, all.data(), doubles, khoroFloat64, comm_, nullptr), "khoroAllGather",
        comm_);
  return all;
}

void Measurement::complain(const std::vector<Sample>& samples, const Case& test) {
  if (!report_) return;
  for (int rank = 0; rank < ranks_; ++rank) {
    const Sample& sample = samples[rank];
    if (sample.wrong == 0) continue;
    report_->complain(
        collective_.moves_data
            ? fmt::format("rank {}: {:.0f} wrong of {} elements ({}, {}), first at {:.0f}", rank,
                          sample.wrong, test.sizes.recv, test.draw.type.name,
                          test.form == Form::in_place ? "in place" : "out of place",
                          sample.first_wrong)
            : fmt::format("rank {}: left {:.0f} of {} barriers before every rank had come", rank,
                          sample.wrong, ranks_));
  }
}

}  // namespace khoro::benchmark
