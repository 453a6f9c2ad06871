// SPDX-License-Identifier: Apache-2.0
// How faults are noted and places are worded.

#include <fmt/format.h>

#include "plan/proof/machine.h"
#include "plan/proof/stuck.h"

namespace khoro::proof {

bool Machine::malformed(const Position& lane, const std::string& message) {
  return stop(Fault::malformed, lane, message);
}

bool Machine::stop(Fault fault, const Position& lane, const std::string& message) {
  note(fault, lane, message);
  stopped_ = true;
  return false;
}

void Machine::note(Fault fault, const Position& lane, const std::string& message) {
  if (!verdict_.found) note(fault, at(lane), place_of(*world_.plan, at(lane)), message);
}

void Machine::note(Fault fault, std::optional<StepAt> where, std::string place,
                   std::string message) {
  if (verdict_.found) return;
  // Clang 14 takes a nested class with initializers for one that cannot be made from nothing.
  Verdict::Found& found = verdict_.found.emplace(Verdict::Found{});
  found.fault = fault;
  found.at = where;
  found.diagnostic.place = std::move(place);
  found.diagnostic.message = std::move(message);
}

StepAt Machine::at(const Position& lane) const {
  return {lane.rank, lane.lane, world_.tile, lane.number};
}

StepAt Machine::at(Epoch epoch) const {
  const Position& lane = world_.positions[static_cast<std::size_t>(places_[epoch.lane])];
  std::size_t tile = lane.tile_begins.size() - 1;
  while (lane.tile_begins[tile] >= epoch.time) --tile;
  return {lane.rank, lane.lane, static_cast<int>(tile),
          static_cast<int>(epoch.time - 1 - lane.tile_begins[tile])};
}

}  // namespace khoro::proof
