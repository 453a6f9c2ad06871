// SPDX-License-Identifier: Apache-2.0
#include "executor/runnable.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace khoro {
namespace {

struct Place {
  std::size_t lane = 0;
  int step = -1;
};

[[noreturn]] void refuse(Place place, const std::string& what) {
  throw Error(Code::invalid_argument,
              fmt::format("a program that cannot be run: lane {} step {}: {}", place.lane,
                          place.step, what));
}

int chunks_of(Buffer buffer, const Image& image, const Collective& collective) {
  switch (buffer) {
    case Buffer::input:
      return collective.input_chunks(image.chunks);
    case Buffer::output:
      return collective.output_chunks(image.chunks);
    case Buffer::scratch:
      break;
  }
  return image.scratch_chunks;
}

void check_stage(const Stage& stage, const Image& image, const Collective& collective,
                 Place place) {
  if (stage.has_span()) {
    const int chunks = chunks_of(stage.buffer, image, collective);
    if (stage.first < 0 || stage.first > stage.last || stage.last > chunks)
      refuse(place,
             fmt::format("chunks {} to {} of a buffer of {}", stage.first, stage.last, chunks));
    if (stage.verb != Verb::read && stage.buffer == Buffer::input)
      refuse(place, "input is written");
    if (stage.verb == Verb::write && stage.buffer == Buffer::scratch && collective.unequal &&
        stage.last - stage.first != 1)
      refuse(place, "several chunks of scratch are written, whose lengths may be any");
    // Who fills a window decides how long a chunk of scratch is.
    if (stage.verb == Verb::offer && stage.buffer == Buffer::scratch &&
        stage.last - stage.first != 1)
      refuse(place, "other than one chunk of scratch is offered");
  }
  const bool has_token = stage.verb == Verb::await || stage.verb == Verb::signal;
  if (has_token &&
      (stage.token() < 0 || static_cast<std::size_t>(stage.token()) >= image.token_counts.size()))
    refuse(place, fmt::format("token {} does not exist", stage.token()));
  if (stage.flags & Stage::premul && !(collective.reduces() && collective.premul))
    refuse(place, "a factor, but the reduction has none");
}

/// The order of the grammar: await, then an offer alone or sources, scale, writes, sinks, signal.
int rank_of(const Stage& stage) {
  switch (stage.verb) {
    case Verb::await:
      return 0;
    case Verb::offer:
      return 9;
    case Verb::read:
    case Verb::recv:
    case Verb::take:
      return stage.flags & Stage::reduces ? 2 : 1;
    case Verb::scale:
      return 3;
    case Verb::write:
      return 4;
    case Verb::send:
    case Verb::put:
      return 5;
    case Verb::signal:
      return 6;
  }
  return 0;
}

bool may_follow(int before, int after) {
  if (before == 0) return after <= 1 || after == 9;
  if (before == 9 || before == 6) return false;
  const bool repeats = before == 2 || before == 4 || before == 5;
  return after != 9 && (after > before || (repeats && after == before));
}

/// An end of a channel belongs to one lane, and has one message at a time: a step names it once.
class EndOwners {
 public:
  explicit EndOwners(const Image& image) : image_(image), last_(image.ports.size()) {}

  void check(std::uint32_t stage, Place place) {
    Place& last = last_[image_.port_of_stage[stage]];
    const Port& port = image_.ports[image_.port_of_stage[stage]];
    if (last.step >= 0 && last.lane != place.lane)
      refuse(place,
             fmt::format("channel {}.{} is an end of lane {}", port.peer, port.index, last.lane));
    if (last.step == place.step)
      refuse(place, fmt::format("channel {}.{} is named twice", port.peer, port.index));
    last = place;
  }

 private:
  const Image& image_;
  std::vector<Place> last_;
};

}  // namespace

void check_runnable(const Image& image, const Collective& collective) {
  EndOwners owners(image);
  for (std::size_t lane = 0; lane < image.lanes.size(); ++lane) {
    Place place{lane, 0};
    int before = -1;  // nothing yet of this step
    const Image::Range range = image.lanes[lane];
    for (std::uint32_t i = range.first; i < range.last; ++i) {
      const Stage& stage = image.stages[i];
      check_stage(stage, image, collective, place);
      if (stage.has_channel()) owners.check(i, place);
      const int rank = rank_of(stage);
      const bool starts = before == -1;
      if (!(starts ? rank == 0 || rank == 1 || rank == 9 : may_follow(before, rank)))
        refuse(place, "its stages are in no order of the grammar");
      before = rank;
      if (!(stage.flags & Stage::ends)) continue;
      if (rank == 0) refuse(place, "it awaits and does nothing");
      before = -1;
      ++place.step;
    }
    if (before != -1) refuse(place, "it does not end");
  }
}

StepRoom room_of(const Image& image, Image::Range lane) noexcept {
  StepRoom most;
  StepRoom step;
  for (std::uint32_t i = lane.first; i < lane.last; ++i) {
    const Stage& stage = image.stages[i];
    if (stage.is_source()) ++step.sources;
    if (stage.verb == Verb::write || stage.verb == Verb::send || stage.verb == Verb::put)
      ++step.sinks;
    most = {std::max(most.sources, step.sources), std::max(most.sinks, step.sinks)};
    if (stage.flags & Stage::ends) step = {};
  }
  return most;
}

}  // namespace khoro
