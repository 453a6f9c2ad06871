// SPDX-License-Identifier: Apache-2.0
#include "sweep/player.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <utility>

#include "support/case_calls.h"
#include "sweep/last_case.h"

namespace khoro::test {
namespace {

/// Of each process: who has so many faults has one.
constexpr std::uint64_t most_shown = 10;

void check(khoroResult_t result, const std::string& what) {
  if (result != khoroSuccess)
    throw std::runtime_error(
        fmt::format("{}: {}: {}", what, khoroGetErrorString(result), khoroGetLastError(nullptr)));
}

/// A communicator of the ranks of `of` that say that they are members; null elsewhere.
khoroComm_t split(khoroComm_t of, int rank, bool member, const std::string& settings) {
  khoroConfig_t config = KHORO_CONFIG_INITIALIZER;
  config.settings = settings.c_str();
  khoroComm_t made = nullptr;
  check(khoroCommSplit(of, member ? 0 : KHORO_SPLIT_NOCOLOR, rank, &made, &config), "split");
  return made;
}

}  // namespace

Table::Table(const Space& space, PlanBook& book, int first_rank, int threads)
    : space_(space), book_(book), tally_(space), first_rank_(first_rank), threads_(threads) {}

int Table::ranks_here(int ranks) const { return std::clamp(ranks - first_rank_, 0, threads_); }

std::shared_ptr<Expectation> Table::expect(std::uint64_t number, const Case& what) {
  const std::lock_guard lock(mutex_);
  Shared& shared = shared_[number];
  if (!shared.expectation) shared.expectation = std::make_shared<Expectation>(what, book_, pools_);
  std::shared_ptr<Expectation> expectation = shared.expectation;
  if (++shared.asked == ranks_here(what.ranks)) shared_.erase(number);
  return expectation;
}

void Table::wrong(int rank, const std::string& what, const Draw& draw, const Case& call) {
  const std::lock_guard lock(mutex_);
  if (++wrong_ > most_shown) return;
  fmt::print("wrong: rank {}: {}: {}\nagain: {}\n", rank, text(call), what, to_line(space_, draw));
  std::fflush(stdout);
}

void Player::play() {
  khoroConfig_t config = KHORO_CONFIG_INITIALIZER;
  // Who plays no part waits until the others have played all that they can without it.
  config.settings = "KHORO_DEADLINE=10000min";
  khoroComm_t world = nullptr;
  check(khoroCommInitWorldConfig(&world, &config), "joining the job");
  int size = 0;
  check(khoroCommUserRank(world, &rank_), "rank");
  check(khoroCommCount(world, &size), "count");
  check(khoroStreamCreate(&host_stream_), "making a stream");
  for (int ranks = 1; ranks <= std::min(size, most_ranks); ++ranks) play_with(ranks, world);
  check(khoroStreamDestroy(host_stream_), "destroying a stream");
  check(khoroCommDestroy(world), "leaving the job");
}

void Player::play_with(int ranks, khoroComm_t world) {
  khoroComm_t base = nullptr;
  bool split_off = false;
  std::uint64_t number = static_cast<std::uint64_t>(ranks) << 48;
  for (const Point& communicator : communicators_of(table_.space(), ranks)) {
    number += std::uint64_t{1} << 32;
    const std::vector<Draw> draws = draws_(communicator);
    if (draws.empty()) continue;
    if (!std::exchange(split_off, true))
      base = split(world, rank_, rank_ < ranks, std::string(sweep_settings));
    if (base == nullptr) return;  // this rank plays no part in any of them
    const std::string settings = settings_of(table_.space(), communicator);
    khoroComm_t comm = split(base, rank_, true, settings);
    play_all(draws, comm, number);
    check(khoroCommDestroy(comm), "destroying a communicator");
    if (shows_progress_ && rank_ == 0) show_progress(ranks, settings, draws.size());
  }
  if (base != nullptr) check(khoroCommDestroy(base), "destroying a communicator");
}

void Player::play_all(const std::vector<Draw>& draws, khoroComm_t comm, std::uint64_t number) {
  CaseMemory memory(comm);
  for (const Draw& draw : draws) {
    try {
      play_one(draw, comm, memory, number++);
    } catch (const std::exception& error) {
      throw std::runtime_error(
          fmt::format("{}\nagain: {}", error.what(), to_line(table_.space(), draw)));
    }
    if (rank_ == 0) table_.tally().played(draw.point);
  }
}

void Player::play_one(const Draw& draw, khoroComm_t comm, CaseMemory& memory,
                      std::uint64_t number) {
  now_playing(to_line(table_.space(), draw));
  const Case call = case_of(table_.space(), draw.point, draw.seed, table_.book());
  const std::shared_ptr<Expectation> expected = table_.expect(number, call);
  buffers_.lay_out(call, rank_, expected->input(rank_));
  memory.bring(buffers_.all());
  check(make_call_its_way(call, {rank_, memory.at(buffers_.input()), memory.at(buffers_.output()),
                                 comm, memory.stream() ? memory.stream() : host_stream_}),
        text(call));
  memory.bring_back();
  if (!expected->right(rank_, buffers_.output()))
    table_.wrong(rank_, "the output has other bits", draw, call);
  if (!buffers_.rest_intact())
    table_.wrong(rank_, "something beside the output was written", draw, call);
}

void Player::show_progress(int ranks, const std::string& settings, std::size_t draws) const {
  fmt::print("{} ranks, {}: {} cases\n", ranks, settings, draws);
  std::fflush(stdout);
}

}  // namespace khoro::test
