// SPDX-License-Identifier: Apache-2.0
#include "communicator/plan_table.h"

#include <fmt/format.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/own_reduction.h"
#include "communicator/channel_table.h"
#include "plan/image.h"
#include "plan/text.h"
#include "transport/transport.h"

namespace khoro {
namespace {

/// Of the whole vector.
std::size_t bytes_of(const Signature& signature, const Collective& collective) {
  if (signature.kind == CallKind::barrier) return 0;
  const std::size_t blocks = collective.unequal ? 1 : static_cast<std::size_t>(collective.blocks());
  return signature.count * khoro::find(signature.dtype)->bytes * blocks;
}

void check_slots(const Algorithm& algorithm, int ranks, int slots) {
  if (runs_with(algorithm, ranks, slots)) return;
  throw Error(
      Code::invalid_argument,
      fmt::format("KHORO_SLOTS={}: {}.{} needs {} at least; set more, or another algorithm "
                  "with KHORO_ALGORITHM",
                  slots, name(algorithm.collective), algorithm.name, algorithm.least_slots));
}

/// For people: "one-shot, two-shot".
std::string names_in_rank_order(CollectiveKind kind) {
  std::string names;
  for (const Algorithm* row : algorithms())
    if (row->collective == kind && row->rank_order)
      names += fmt::format("{}{}", names.empty() ? "" : ", ", row->name);
  return names;
}

Lane send_lane(int peer, int channel) { co_yield read(input(0)) | send(peer, channel); }
Lane recv_lane(int peer, int channel) { co_yield recv(peer, channel) | write(output(0)); }
Lane copy_lane() { co_yield read(input(0)) | write(output(0)); }

}  // namespace

PlanTable::PlanTable(int rank, int ranks, const Settings& settings, Ends& ends)
    : PlanTable(rank, ranks, settings) {
  ends_ = &ends;
}

PlanTable::PlanTable(int rank, int ranks, const Settings& settings, const gpu::DeviceSeat& seat)
    : PlanTable(rank, ranks, settings) {
  seat_.emplace(seat).partials = options_.partials;
  medium_ = Medium::memory;
}

PlanTable::PlanTable(int rank, int ranks, const Settings& settings)
    : rank_(rank),
      topology_(Topology::one_machine(ranks)),
      medium_(transport_of(settings).uses_sockets ? Medium::sockets : Medium::memory),
      slots_(static_cast<int>(settings.slots)),
      exact_(settings.determinism == "exact") {
  options_.partials = exact_ || settings.partials == "f32" ? Partials::f32 : Partials::dtype;
  options_.scratch = &scratch_;
  if (!settings.algorithm.empty()) force(settings.algorithm);
  if (settings.plan_file.empty())
    check_slots_for_all();
  else
    read_given_plan(settings.plan_file);
}

/// Now, for all ranks together, and not at a call that only some of them may have reached.
void PlanTable::check_slots_for_all() const {
  for (const Algorithm* row : algorithms()) {
    Collective collective{row->collective, topology_.ranks()};
    collective.rank_order = exact_ && collective.reduces();
    const Choice choice = khoro::choose(collective, 0, topology_, slots_, medium_);
    check_slots(*choice.algorithm, collective.ranks, slots_);
  }
}

void PlanTable::force(const std::string& setting) {
  const auto colon = setting.find(':');
  const auto kind = collective_named(std::string_view(setting).substr(0, colon));
  if (kind && colon != std::string::npos)
    forced_ = find_algorithm(*kind, setting.substr(colon + 1));
  if (forced_ && exact_ && Collective{*kind}.reduces() && !forced_->rank_order)
    throw Error(Code::invalid_argument,
                fmt::format("KHORO_ALGORITHM={} with KHORO_DETERMINISM=exact: it does not fold in "
                            "rank order; force one that does ({}), or none",
                            setting, names_in_rank_order(*kind)));
  if (forced_) return check_slots(*forced_, topology_.ranks(), slots_);
  std::string names;
  for (const Algorithm* row : algorithms())
    names += fmt::format("{}{}:{}", names.empty() ? "" : ", ", name(row->collective), row->name);
  throw Error(Code::invalid_argument,
              fmt::format("KHORO_ALGORITHM={}: no such algorithm; use one of {}", setting, names));
}

void PlanTable::read_given_plan(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file)
    throw Error(Code::invalid_argument,
                fmt::format("KHORO_TEST_PLAN_FILE={}: cannot read it", path));
  Parsed parsed = parse(text);
  if (!parsed.plan) {
    const Diagnostic& first = parsed.diagnostics.at(0);
    throw Error(Code::invalid_argument, fmt::format("KHORO_TEST_PLAN_FILE={}: line {}: {}", path,
                                                    first.line, first.message));
  }
  if (parsed.plan->collective.ranks != topology_.ranks())
    throw Error(Code::invalid_argument,
                fmt::format("KHORO_TEST_PLAN_FILE={}: a plan for {} ranks, but there are {}", path,
                            parsed.plan->collective.ranks, topology_.ranks()));
  given_ = std::move(*parsed.plan);
  given_hash_ = hash_text(text);
}

Collective PlanTable::collective_of(const Signature& signature, const OwnReduction* own) const {
  Collective collective = signature.collective(topology_.ranks());
  const bool in_order = exact_ || (own != nullptr && !own->commutative);
  collective.rank_order = in_order && collective.reduces();
  return collective;
}

Choice PlanTable::choose(const Signature& signature, const Collective& collective) const {
  Choice choice;
  if (given_ && given_->collective == collective) {
    choice.why = "given by KHORO_TEST_PLAN_FILE";
  } else if (forced_ && forced_->collective == collective.kind) {
    choice.algorithm = forced_;
    choice.why = "forced by KHORO_ALGORITHM";
  } else {
    choice = khoro::choose(collective, bytes_of(signature, collective), topology_, slots_, medium_);
  }
  choice.shape.slots = slots_;
  return choice;
}

void PlanTable::check(const Signature& signature, const OwnReduction* own) const {
  const Collective collective = collective_of(signature, own);
  if (!forced_ || forced_->collective != collective.kind || can_do(*forced_, collective)) return;
  const bool blocks_differ = collective.unequal && forced_->equal_blocks;
  throw Error(
      Code::invalid_argument,
      fmt::format("{}: KHORO_ALGORITHM={}:{} can only do {}; force another algorithm or none",
                  describe(signature), name(forced_->collective), forced_->name,
                  blocks_differ ? "blocks of equal length" : "commutative reductions"));
}

PlanTable::Entry& PlanTable::find(const Signature& signature, const OwnReduction* own) {
  const Collective collective = collective_of(signature, own);
  const Choice choice = choose(signature, collective);
  for (Entry& entry : entries_)
    if (entry.algorithm == choice.algorithm && entry.collective == collective) return entry;
  return make(collective, choice);
}

PlanTable::Entry& PlanTable::make(const Collective& collective, const Choice& choice) {
  Entry entry;
  entry.collective = collective;
  entry.algorithm = choice.algorithm;
  Image image;
  std::string name;
  if (choice.algorithm) {
    check_slots(*choice.algorithm, collective.ranks, slots_);
    const Plan plan = make_plan(*choice.algorithm, collective, topology_, choice.shape);
    entry.plan_hash = plan_hash(*choice.algorithm, collective, topology_, choice.shape);
    image = flatten(plan, rank_);
    name = plan.name();
  } else {
    entry.plan_hash = given_hash_;
    image = flatten(*given_, rank_);
    name = given_->name();
  }
  log(LogLevel::info, "rank {}: plan {} ranks {} program hash {:016x}: {}", rank_, name,
      collective.ranks, image.hash, choice.why);
  // Of a given plan nothing is known.
  const int proved = choice.algorithm ? choice.algorithm->least_slots : slots_;
  if (seat_) {
    gpu::DeviceSeat seat = *seat_;
    seat.in_strands = choice.algorithm && proved <= gpu::DeviceEnds::slots_of_strand &&
                      choice.algorithm->most_channels <= gpu::DeviceEnds::channels_of_strand;
    entry.on_gpu = std::make_unique<gpu::DeviceExecution>(std::move(image), collective, seat);
    const auto footprint = entry.on_gpu->footprint();
    log(LogLevel::info,
        "rank {}: plan {} takes {} blocks of {} threads with {} bytes of shared memory each, for "
        "each of {} strands at most, and {} bytes of the GPU's memory",
        rank_, name, footprint.blocks, footprint.threads, footprint.shared_bytes, footprint.strands,
        footprint.program_bytes);
    return entries_.emplace_back(std::move(entry));
  }
  ExecutionOptions options = options_;
  if (proved > static_cast<int>(ChannelShape::least_slots)) options.short_bytes = 0;
  entry.execution = std::make_unique<Execution>(std::move(image), collective, *ends_, options);
  return entries_.emplace_back(std::move(entry));
}

namespace {

/// What looks like a broadcast of one chunk.
Plan plan_of(std::string name, int ranks, std::function<Lane()> lane) {
  Plan plan;
  plan.algorithm = std::move(name);
  plan.collective = {CollectiveKind::broadcast, ranks};
  plan.program = [lane = std::move(lane)](int) {
    Program program;
    program.lanes.push_back(lane());
    return program;
  };
  return plan;
}

Plan copy_plan() { return plan_of("copy", 1, copy_lane); }
/// To each end the pair looks so.
Plan port_plan(int peer, bool sends, std::uint8_t channel) {
  return plan_of("point_to_point", 2, [peer, sends, channel] {
    return sends ? send_lane(peer, channel) : recv_lane(peer, channel);
  });
}

}  // namespace

std::unique_ptr<gpu::DeviceExecution> PlanTable::make_gpu_port(int peer, bool sends,
                                                               std::uint8_t channel) {
  const Plan plan = peer == rank_ ? copy_plan() : port_plan(peer, sends, channel);
  gpu::DeviceSeat seat = *seat_;
  seat.passes_empty = peer != rank_;
  seat.in_strands = true;
  return std::make_unique<gpu::DeviceExecution>(flatten(plan, 0), plan.collective, seat);
}

std::unique_ptr<Execution> PlanTable::make_port(int peer, bool sends, std::uint8_t channel) {
  const Plan plan = port_plan(peer, sends, channel);
  ExecutionOptions options = options_;
  options.passes_empty = true;
  options.scratch = nullptr;  // it needs none, and runs beside others
  return std::make_unique<Execution>(flatten(plan, 0), plan.collective, *ends_, options);
}

}  // namespace khoro
