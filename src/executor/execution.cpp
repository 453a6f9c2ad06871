// SPDX-License-Identifier: Apache-2.0
#include "executor/execution.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "executor/host_engine.h"
#include "executor/interpreter.h"
#include "executor/runnable.h"
#include "executor/team.h"

namespace khoro {
namespace {

Image checked(Image image, const Collective& collective) {
  check_runnable(image, collective);
  return image;
}

}  // namespace

struct Execution::State {
  State(Image program, const Collective& collective, Ends& ends, const ExecutionOptions& options)
      : image(checked(std::move(program), collective)), engine(image, collective, ends, options) {
    std::vector<StepRoom> rooms;
    StepRoom sum;
    for (const Image::Range lane : image.lanes) {
      rooms.push_back(room_of(image, lane));
      sum = {sum.sources + rooms.back().sources, sum.sinks + rooms.back().sinks};
    }
    operands.resize(sum.sources);
    sources.resize(sum.sources);
    sinks.resize(sum.sinks);
    StepRoom used;
    for (std::size_t i = 0; i < rooms.size(); ++i) {
      LaneState lane;
      lane.first = image.lanes[i].first;
      lane.last = image.lanes[i].last;
      lane.operands = operands.data() + used.sources;
      lane.sources = sources.data() + used.sources;
      lane.sinks = sinks.data() + used.sinks;
      lanes.push_back(lane);
      used = {used.sources + rooms[i].sources, used.sinks + rooms[i].sinks};
    }
  }

  const Image image;
  HostEngine engine;
  std::vector<LaneState> lanes;
  std::vector<Operand> operands;
  std::vector<Source> sources;
  std::vector<Sink> sinks;
};

Execution::Execution(Image image, const Collective& collective, Ends& ends,
                     const ExecutionOptions& options)
    : state_(std::make_unique<State>(std::move(image), collective, ends, options)) {}
Execution::~Execution() = default;

const Image& Execution::image() const noexcept { return state_->image; }

void Execution::start(const CallArguments& call) {
  state_->engine.start(call);
  const bool empty = state_->engine.tiles() == 0;
  for (LaneState& lane : state_->lanes) {
    lane.stage = lane.first;
    lane.tile = 0;
    lane.outlook = empty ? Outlook::ends : Outlook::waits;
  }
}

Progress Execution::advance() noexcept {
  State& state = *state_;
  bool moved = false;
  bool ended = true;
  for (LaneState& lane : state.lanes) {
    if (lane.outlook == Outlook::ends) continue;
    switch (khoro::advance(state.engine, Alone{}, lane)) {
      case Progress::failed:
        return Progress::failed;
      case Progress::moved:
        moved = true;
        ended = false;
        break;
      case Progress::waiting:
        ended = false;
        break;
      case Progress::done:
        moved = true;
        break;
    }
  }
  // A sender that nothing moves may be asked for a message in another way, so it looks too.
  if (!moved || ended) {
    const bool returned = state.engine.all_returned();
    if (ended && returned) return Progress::done;
  }
  return moved ? Progress::moved : Progress::waiting;
}

Progress Execution::advance(int number, int most_steps) noexcept {
  LaneState& lane = state_->lanes[static_cast<std::size_t>(number)];
  if (lane.outlook == Outlook::ends) return Progress::done;
  return khoro::advance(state_->engine, Alone{}, lane, most_steps);
}

Status Execution::status() const noexcept { return state_->engine.status(); }

Execution::Position Execution::position() const noexcept {
  const State& state = *state_;
  for (std::size_t i = 0; i < state.lanes.size(); ++i) {
    const LaneState& lane = state.lanes[i];
    if (lane.outlook == Outlook::ends || lane.stage == lane.last) continue;
    Position position;
    position.lane = static_cast<int>(i);
    for (std::uint32_t s = lane.first; s < lane.stage; ++s)
      if (state.image.stages[s].flags & Stage::ends) ++position.step;
    const Stage& stage = state.image.stages[lane.stage];
    if (stage.has_channel()) {
      position.peer = stage.peer();
      position.receives = stage.verb == Verb::recv || stage.verb == Verb::take;
    }
    return position;
  }
  Position position;
  position.peer = state.engine.owing_peer();
  return position;
}

}  // namespace khoro
