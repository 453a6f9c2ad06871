// SPDX-License-Identifier: Apache-2.0
#include "algorithms/parts.h"

#include <cstddef>
#include <optional>
#include <utility>

namespace khoro {
namespace {

const std::vector<Span>& places_of(const Part& part, Buffer buffer) {
  switch (buffer) {
    case Buffer::input:
      return part.input;
    case Buffer::output:
      return part.output;
    case Buffer::scratch:
      break;
  }
  return part.scratch;
}

Span place_of(const Part& part, Span span) {
  if (span.first == span.last) return {};
  const std::vector<Span>& places = places_of(part, span.buffer);
  const Span first = places.at(static_cast<std::size_t>(span.first));
  const Span last = places.at(static_cast<std::size_t>(span.last - 1));
  return {first.buffer, first.first, last.last};
}

bool only_reads(const Step& step) {
  return step.stages().size() == 1 && step.stages()[0].verb == Verb::read;
}

/// The step under the names of the larger plan; nothing if it has nothing to do. That a value has
/// no chunks its sender and its receiver see alike, for each has a place for it.
std::optional<Step> renamed(const Part& part, const Step& step) {
  std::optional<Step> result;
  for (Stage stage : step.stages()) {
    if (stage.has_channel())
      stage.peer_or_token = part.ranks.at(static_cast<std::size_t>(stage.peer()));
    if (stage.has_span()) {
      const Span place = place_of(part, stage.span());
      if (place.first == place.last) return std::nullopt;
      if (stage.verb == Verb::write && only_reads(*result) && result->stages()[0].span() == place)
        continue;
      stage.buffer = place.buffer;
      stage.first = place.first;
      stage.last = place.last;
    }
    if (result)
      result->add(stage);
    else
      result.emplace(stage);
  }
  return only_reads(*result) ? std::nullopt : std::move(result);
}

}  // namespace

Lane lane_of(Part part) {
  const Topology topology = Topology::one_machine(part.collective.ranks);
  Program program = programs_of(part.algorithm, part.collective, topology, Shape{})(part.number);
  while (const Step* step = program.lanes.at(0).next())
    if (std::optional<Step> moved = renamed(part, *step)) co_yield std::move(*moved);
}

Lane copies(std::vector<Copy> copies) {
  for (const Copy& copy : copies) co_yield read(copy.from) | write(copy.to);
}

Lane in_turn(std::vector<Lane> lanes) {
  for (Lane& lane : lanes)
    while (Step* step = lane.next()) co_yield std::move(*step);
}

}  // namespace khoro
