// SPDX-License-Identifier: Apache-2.0
#include "measurement.h"

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>

#include "ranks.h"

namespace khoro::benchmark {
namespace {

double thread_cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
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

}  // namespace

Measurement::Measurement(const Collective& collective, const Options& options, khoroComm_t comm,
                         Report* report)
    : collective_(collective), options_(options), comm_(comm), report_(report) {
  check(khoroCommUserRank(comm, &rank_), "khoroCommUserRank", comm);
  check(khoroCommCount(comm, &ranks_), "khoroCommCount", comm);
  if (options.timeout_s > 0)
    check(khoroCommSetDeadline(comm, options.timeout_s * 1000), "khoroCommSetDeadline", comm);
  const Extent largest = extent(options.max_bytes, 1);
  check_memory(largest.send + largest.recv, ranks_);
  send_.emplace(largest.send);
  recv_.emplace(std::max(largest.send, largest.recv));
}

Extent Measurement::extent(std::size_t bytes, std::size_t element_bytes) const {
  return collective_.extent(bytes / element_bytes, ranks_);
}

bool Measurement::run() {
  // Without a reduction the results do not depend on one.
  const std::vector<OpRow> ops =
      collective_.reduces ? options_.ops : std::vector<OpRow>{{"none", khoroSum, false}};
  for (int cycle = 0; options_.cycles == 0 || cycle < options_.cycles; ++cycle) {
    for (const TypeRow& type : options_.types)
      for (const OpRow& op : ops)
        if (applies(op, type)) scan(type, op);
  }
  if (report_) report_->end(wrong_halves_, bandwidth_sum_ / static_cast<double>(bandwidths_));
  return wrong_halves_ == 0;
}

void Measurement::scan(const TypeRow& type, const OpRow& op) {
  for (std::optional<std::size_t> bytes = options_.min_bytes; bytes;
       bytes = options_.after(*bytes)) {
    const Row row = measure_row(*bytes, type, op);
    if (report_) report_->add(row);
  }
}

Row Measurement::measure_row(std::size_t bytes, const TypeRow& type, const OpRow& op) {
  const Extent sizes = extent(bytes, type.bytes);
  const Draw draw{type, op.op, ranks_, 0};
  Row row{std::max(sizes.send, sizes.recv) * type.bytes,
          sizes.count,
          type.name,
          op.name,
          measure(sizes, draw, false),
          std::nullopt};
  if (collective_.in_place) row.in_place = measure(sizes, draw, true);
  return row;
}

Result Measurement::measure(const Extent& sizes, const Draw& draw, bool in_place) {
  const Call call = prepare(sizes, draw, in_place);
  const std::vector<Sample> times = gather(time(call));
  Result result{};
  result.seconds =
      combine(times, options_.average, options_.cpu_time ? &Sample::cpu_seconds : &Sample::seconds);
  const double bytes = static_cast<double>(std::max(sizes.send, sizes.recv) * draw.type.bytes);
  result.algorithm_bandwidth = bytes / 1e9 / combine(times, options_.average, &Sample::seconds);
  result.bus_bandwidth = result.algorithm_bandwidth * collective_.bus_factor(ranks_);
  bandwidth_sum_ += result.bus_bandwidth;
  ++bandwidths_;

  for (int k = 0; k < options_.checks && result.wrong.value_or(0) == 0; ++k) {
    Draw fresh = draw;
    fresh.seed = ++calls_checked_;
    const auto samples = gather(verify(prepare(sizes, fresh, in_place), sizes, fresh, in_place));
    result.wrong = 0;
    for (int rank = 0; rank < ranks_; ++rank) {
      if (samples[rank].wrong == 0) continue;
      *result.wrong += static_cast<std::uint64_t>(samples[rank].wrong);
      result.wrong_ranks.push_back(rank);
    }
    if (*result.wrong == 0) continue;
    ++wrong_halves_;
    complain(samples, sizes, fresh, in_place);
  }
  return result;
}

Sample Measurement::time(const Call& call) {
  for (int k = 0; k < options_.warmups; ++k) once(call, options_.aggregate);
  check(khoroBarrier(comm_, nullptr), "khoroBarrier", comm_);
  const double cpu_start = thread_cpu_seconds();
  const auto start = std::chrono::steady_clock::now();
  for (int k = 0; k < options_.iterations; ++k) once(call, options_.aggregate);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  const double calls = static_cast<double>(options_.iterations) * options_.aggregate;
  return {elapsed.count() / calls, (thread_cpu_seconds() - cpu_start) / calls, 0, 0};
}

Sample Measurement::verify(const Call& call, const Extent& sizes, const Draw& draw, bool in_place) {
  once(call, 1);
  Sample sample{};
  sample.first_wrong = std::numeric_limits<double>::max();
  const auto add = [&](const Wrong& wrong) {
    if (wrong.count == 0) return;
    sample.wrong += static_cast<double>(wrong.count);
    sample.first_wrong = std::min(sample.first_wrong, static_cast<double>(wrong.first));
  };
  for (const Origin& origin : collective_.expect(sizes, rank_, ranks_))
    add(compare(draw, origin, recv_->data()));
  // A byte written where nothing belongs, or an input changed, counts as one wrong element.
  if (!recv_->intact(sizes.recv * draw.type.bytes)) add({1, sizes.recv});
  if (!in_place) {
    const Origin own{rank_, 0, 0, sizes.send};
    if (!send_->intact(sizes.send * draw.type.bytes)) add({1, sizes.send});
    if (const Wrong changed = compare(draw, own, send_->data()); changed.count)
      add({1, changed.first});
  }
  return sample;
}

Call Measurement::prepare(const Extent& sizes, const Draw& draw, bool in_place) {
  recv_->prepare(sizes.recv * draw.type.bytes);
  std::byte* input = send_->data();
  if (in_place) {
    input = recv_->data() + rank_ * sizes.send_stride * draw.type.bytes;
  } else {
    send_->prepare(sizes.send * draw.type.bytes);
  }
  fill(draw, rank_, sizes.send, input);
  return {input, recv_->data(), sizes.count, draw.type.type, draw.op, comm_, rank_, ranks_};
}

void Measurement::once(const Call& call, int calls) {
  if (calls > 1) check(khoroGroupStart(), "khoroGroupStart", comm_);
  for (int k = 0; k < calls; ++k) {
    check(collective_.run(call), std::string(collective_.program), comm_);
    if (options_.blocking && calls == 1) check(khoroBarrier(comm_, nullptr), "khoroBarrier", comm_);
  }
  if (calls == 1) return;
  check(khoroGroupEnd(), "khoroGroupEnd", comm_);
  if (options_.blocking) check(khoroBarrier(comm_, nullptr), "khoroBarrier", comm_);
}

std::vector<Sample> Measurement::gather(const Sample& mine) {
  constexpr std::size_t doubles = sizeof(Sample) / sizeof(double);
  std::vector<Sample> all(ranks_);
  check(khoroAllGather(&mine, all.data(), doubles, khoroFloat64, comm_, nullptr), "khoroAllGather",
        comm_);
  return all;
}

void Measurement::complain(const std::vector<Sample>& samples, const Extent& sizes,
                           const Draw& draw, bool in_place) {
  if (!report_) return;
  for (int rank = 0; rank < ranks_; ++rank) {
    if (samples[rank].wrong == 0) continue;
    report_->complain(fmt::format("rank {}: {:.0f} wrong of {} elements ({}, {}), first at {:.0f}",
                                  rank, samples[rank].wrong, sizes.recv, draw.type.name,
                                  in_place ? "in place" : "out of place",
                                  samples[rank].first_wrong));
  }
}

}  // namespace khoro::benchmark
