// SPDX-License-Identifier: Apache-2.0
#include "plan/proof/stuck.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/text.h"

namespace khoro::proof {
namespace {

constexpr std::size_t most_lines = 16;

/// What a lane waits for, and the lane that alone could bring it (nobody: there is none).
struct Wait {
  std::string what;
  int rank = 0;
  int position = nobody;
};

bool brings(const Stage& stage, const Position& by, const Position& waiting) {
  if (waiting.lacks == Lack::token)
    return stage.verb == Verb::signal && stage.token() == waiting.token;
  const Channel& channel = *waiting.channel;
  const int index = stage.index == own_lane ? by.lane : stage.index;
  const int other = by.rank == channel.from ? channel.to : channel.from;
  if (!stage.has_channel() || stage.peer() != other || index != channel.index) return false;
  if (waiting.lacks == Lack::message) return is_sink(stage.verb);
  return waiting.lacks == Lack::window ? stage.verb == Verb::offer : stage.is_source();
}

/// The lane of `rank` that has a step which could end the wait, whether it got there or not.
int find_bringer(const World& world, int rank, const Position& waiting) {
  const RankState& state = world.ranks[static_cast<std::size_t>(rank)];
  Program program = world.plan->program(rank);
  for (int i = 0; i < state.lanes; ++i) {
    const int number = state.first_lane + i;
    const Position& by = world.positions[static_cast<std::size_t>(number)];
    while (const Step* step = program.lanes[static_cast<std::size_t>(i)].next())
      for (const Stage& stage : step->stages())
        if (brings(stage, by, waiting)) return number;
  }
  return nobody;
}

Wait wait_of(const World& world, const Position& lane) {
  Wait wait;
  const RankState& rank = world.ranks[static_cast<std::size_t>(lane.rank)];
  switch (lane.lacks) {
    case Lack::message:
      wait = {fmt::format("a message from rank {}", lane.channel->from), lane.channel->from,
              lane.channel->sender};
      break;
    case Lack::slot:
      wait = {fmt::format("a free slot to rank {}, which has all {} full", lane.channel->to,
                          lane.channel->slots.size()),
              lane.channel->to, lane.channel->receiver};
      break;
    case Lack::window:
      wait = {fmt::format("a window of rank {}", lane.channel->to), lane.channel->to,
              lane.channel->receiver};
      break;
    case Lack::room_for_window:
      wait = {fmt::format("one of its {} open windows, which it would have to take itself",
                          lane.channel->windows.size()),
              lane.rank, rank.first_lane + lane.lane};
      break;
    case Lack::token: {
      const TokenState& token = rank.tokens[static_cast<std::size_t>(lane.token)];
      wait = {fmt::format("token {}", token.token.name), lane.rank, token.signaller};
      break;
    }
    case Lack::loan:
      wait = {fmt::format("rank {} to receive what it was lent", lane.channel->to),
              lane.channel->to, lane.channel->receiver};
      break;
    case Lack::nothing:
      break;
  }
  if (wait.position == nobody) wait.position = find_bringer(world, wait.rank, lane);
  return wait;
}

std::string place(const World& world, const Position& lane) {
  return place_of(*world.plan, {lane.rank, lane.lane, world.tile, lane.number});
}

std::string describe_cycle(const World& world, const std::vector<int>& cycle) {
  std::string message = fmt::format("a cycle of {} {}", cycle.size(),
                                    cycle.size() == 1 ? "lane that waits" : "lanes that wait");
  for (std::size_t i = 0; i < cycle.size() && i < most_lines; ++i) {
    const Position& lane = world.positions[static_cast<std::size_t>(cycle[i])];
    message += fmt::format("\n  {} waits for {}", place(world, lane), wait_of(world, lane).what);
  }
  if (cycle.size() > most_lines)
    message += fmt::format("\n  and {} more", cycle.size() - most_lines);
  return message;
}

}  // namespace

Stuck explain_stuck(const World& world) {
  const auto waits = [](const Position& lane) { return lane.step != nullptr; };
  const auto first = std::find_if(world.positions.begin(), world.positions.end(), waits);
  std::vector<int> chain;
  std::vector<bool> seen(world.positions.size());
  int now = static_cast<int>(first - world.positions.begin());
  for (;;) {
    chain.push_back(now);
    seen[static_cast<std::size_t>(now)] = true;
    const Position& lane = world.positions[static_cast<std::size_t>(now)];
    const Wait wait = wait_of(world, lane);
    if (wait.position == nobody)
      return {now, fmt::format("waits for {}, which rank {} never brings", wait.what, wait.rank)};
    const Position& next = world.positions[static_cast<std::size_t>(wait.position)];
    if (next.step == nullptr)
      return {now, fmt::format("waits for {}, whose lane {} has ended", wait.what, next.lane)};
    now = wait.position;
    if (seen[static_cast<std::size_t>(now)]) break;
  }
  std::vector<int> cycle(std::find(chain.begin(), chain.end(), now), chain.end());
  std::rotate(cycle.begin(), std::min_element(cycle.begin(), cycle.end()), cycle.end());
  return {cycle.front(), describe_cycle(world, cycle)};
}

std::string place_of(const Plan& plan, const StepAt& at) {
  Program program = plan.program(at.rank);
  const std::string place = fmt::format("rank {} lane {}", at.rank, at.lane);
  Lane& lane = program.lanes[static_cast<std::size_t>(at.lane)];
  const Step* step = lane.next();
  for (int i = 0; i < at.step && step != nullptr; ++i) step = lane.next();
  if (step == nullptr) return place + " end";
  return fmt::format("{} step {}: {}", place, at.step, print(*step, at.lane, program.tokens));
}

}  // namespace khoro::proof
