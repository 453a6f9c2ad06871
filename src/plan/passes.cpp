// SPDX-License-Identifier: Apache-2.0
#include "plan/passes.h"

#include <utility>

namespace khoro {
namespace {

Lane premultiplied_lane(Lane lane) {
  while (Step* step = lane.next()) {
    for (Stage& stage : step->stages())
      if (stage.verb == Verb::read && stage.buffer == Buffer::input) stage.flags |= Stage::premul;
    co_yield std::move(*step);
  }
}

}  // namespace

Program premultiplied(Program program) {
  for (Lane& lane : program.lanes) lane = premultiplied_lane(std::move(lane));
  return program;
}

}  // namespace khoro
