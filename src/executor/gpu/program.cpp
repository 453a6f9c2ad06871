// SPDX-License-Identifier: Apache-2.0
#include "executor/gpu/program.h"

#include <algorithm>
#include <array>
#include <new>

#include "base/own_reduction.h"
#include "executor/gpu/run_lane.h"
#include "executor/runnable.h"

namespace khoro::gpu {
namespace {

/// Puts values at an offset of the copy.
template <class T>
void put(std::span<std::byte> memory, std::uint64_t offset, std::span<const T> values) {
  for (std::size_t i = 0; i < values.size(); ++i)
    new (memory.data() + offset + i * sizeof(T)) T(values[i]);
}

template <class T>
T* there(std::byte* at, std::uint64_t offset) {
  return reinterpret_cast<T*>(at + offset);
}

/// Which lanes write the chunks of a buffer, themselves or by windows that they offer.
class Writers {
 public:
  void add(std::int32_t chunk, int lane) {
    const auto i = static_cast<std::size_t>(chunk);
    if (i >= lanes_.size()) lanes_.resize(i + 1, nobody);
    lanes_[i] = lanes_[i] == nobody || lanes_[i] == lane ? lane : several;
  }
  int of(std::int32_t chunk) const {
    const auto i = static_cast<std::size_t>(chunk);
    return i < lanes_.size() ? lanes_[i] : nobody;
  }
  std::int32_t chunks() const { return static_cast<std::int32_t>(lanes_.size()); }
  /// No lane but this one writes there.
  bool none_but(int lane, const Stage& stage) const {
    for (std::int32_t chunk = stage.first; chunk < stage.last; ++chunk)
      if (of(chunk) != nobody && of(chunk) != lane) return false;
    return true;
  }

  static constexpr int nobody = -1, several = -2;

 private:
  std::vector<int> lanes_;
};

/// The image's stages, with what kernels want to know of them.
std::vector<Stage> stages_of(const Image& image, const Collective& collective) {
  static_assert(
      ((Stage::reduces | Stage::premul | Stage::ends) & (stage_lends | stage_lends_in_place)) == 0);
  // By buffer; those of input are who writes output that lies upon it.
  std::array<Writers, 3> writers;
  const auto of = [&](Buffer buffer) -> Writers& {
    return writers[static_cast<std::size_t>(buffer)];
  };
  for (std::size_t lane = 0; lane < image.lanes.size(); ++lane)
    for (std::uint32_t i = image.lanes[lane].first; i < image.lanes[lane].last; ++i) {
      const Stage& stage = image.stages[i];
      if (stage.verb != Verb::write && stage.verb != Verb::offer) continue;
      for (std::int32_t chunk = stage.first; chunk < stage.last; ++chunk)
        of(stage.buffer).add(chunk, static_cast<int>(lane));
    }
  const Writers& output = of(Buffer::output);
  for (std::int32_t chunk = 0; chunk < output.chunks(); ++chunk)
    if (output.of(chunk) != Writers::nobody)
      if (const auto input = collective.in_place_input(image.rank, chunk, image.chunks))
        of(Buffer::input).add(*input, output.of(chunk));

  std::vector<Stage> stages = image.stages;
  for (std::size_t lane = 0; lane < image.lanes.size(); ++lane)
    for (std::uint32_t i = image.lanes[lane].first; i < image.lanes[lane].last; ++i) {
      Stage& stage = stages[i];
      if (stage.verb != Verb::read && stage.verb != Verb::write) continue;
      const bool input = stage.buffer == Buffer::input;
      const bool alone = of(stage.buffer).none_but(static_cast<int>(lane), stage);
      if (input || alone) stage.flags |= stage_lends;
      if (alone && (!input || image.lends_in_place)) stage.flags |= stage_lends_in_place;
    }
  return stages;
}

}  // namespace

ProgramLayout::ProgramLayout(const Image& image, const Collective& collective,
                             std::uint32_t strands)
    : image_(image),
      collective_(collective),
      strand_count_(strands),
      offers_(std::any_of(image.stages.begin(), image.stages.end(),
                          [](const Stage& stage) { return stage.verb == Verb::offer; })) {
  check_runnable(image, collective);
  for (const Image::Range lane : image.lanes) {
    const StepRoom room = room_of(image, lane);
    sources_ = std::max(sources_, room.sources);
    sinks_ = std::max(sinks_, room.sinks);
  }
  stages_ = reserve<Stage>(image.stages.size());
  port_of_stage_ = reserve<std::uint32_t>(image.stages.size());
  lanes_ = reserve<LaneRange>(image.lanes.size());
  weights_ = reserve<std::uint32_t>(image.weights.empty() ? 0 : image.weights.size() + 1);
  strands_ = reserve<Strand>(strand_count_);
  ends_ = reserve<End*>(strand_count_ * image.ports.size());
  tokens_ = reserve<Token>(strand_count_ * image.token_counts.size());
  held_ = reserve<Held>(strand_count_ * static_cast<std::size_t>(image.scratch_chunks));
  windows_ = reserve<OfferedWindow>(offers_ ? strand_count_ * windows_of_strand() : 0);
}

template <class T>
std::uint64_t ProgramLayout::reserve(std::size_t count) {
  const std::uint64_t first = bytes_;
  bytes_ = Layout::to_line(first + count * sizeof(T));
  return first;
}

std::size_t ProgramLayout::windows_of_strand() const noexcept {
  return image_.ports.size() * End::most_windows;
}

std::uint64_t ProgramLayout::ends_of(std::uint32_t strand) const noexcept {
  return ends_ + strand * image_.ports.size() * sizeof(End*);
}

std::uint32_t ProgramLayout::block_bytes() const noexcept {
  return BlockMemory::bytes(sources_, sinks_);
}

Program ProgramLayout::write(std::span<std::byte> memory, std::byte* at) const {
  std::vector<LaneRange> lanes;
  for (const Image::Range lane : image_.lanes) lanes.push_back({lane.first, lane.last});
  const auto held_of_strand = static_cast<std::size_t>(image_.scratch_chunks);
  std::vector<Strand> strands;
  std::vector<Token> tokens;
  for (std::uint32_t strand = 0; strand < strand_count_; ++strand) {
    strands.push_back(
        {there<End* const>(at, ends_of(strand)), there<Token>(at, tokens_) + tokens.size(),
         there<Held>(at, held_) + strand * held_of_strand,
         offers_ ? there<OfferedWindow>(at, windows_) + strand * windows_of_strand() : nullptr});
    for (const int count : image_.token_counts)
      tokens.push_back({static_cast<std::uint32_t>(count)});
  }
  const std::vector<End*> ends(strand_count_ * image_.ports.size());
  const std::vector<Held> held(strand_count_ * held_of_strand);
  const std::vector<OfferedWindow> windows(offers_ ? strand_count_ * windows_of_strand() : 0);

  put<Stage>(memory, stages_, stages_of(image_, collective_));
  put<std::uint32_t>(memory, port_of_stage_, image_.port_of_stage);
  put<LaneRange>(memory, lanes_, lanes);
  if (!image_.weights.empty())
    put<std::uint32_t>(memory, weights_, {image_.weights.cuts(), image_.weights.size() + 1});
  put<Strand>(memory, strands_, strands);
  put<End*>(memory, ends_, ends);
  put<Token>(memory, tokens_, tokens);
  put<Held>(memory, held_, held);
  put<OfferedWindow>(memory, windows_, windows);

  Program program;
  program.stages = there<const Stage>(at, stages_);
  program.port_of_stage = there<const std::uint32_t>(at, port_of_stage_);
  program.lanes = there<const LaneRange>(at, lanes_);
  program.strands = there<const Strand>(at, strands_);
  program.strand_count = strand_count_;
  program.lane_count = static_cast<std::uint32_t>(lanes.size());
  program.ranks = static_cast<std::uint32_t>(collective_.ranks);
  program.chunks = image_.chunks;
  program.sources = sources_;
  program.sinks = sinks_;
  return program;
}

const std::uint32_t* ProgramLayout::weights(std::byte* at) const noexcept {
  return image_.weights.empty() ? nullptr : there<const std::uint32_t>(at, weights_);
}

Call make_call(const Program& program, const CallShape& shape, const CallArguments& arguments,
               Partials partials, const CallMemory& memory) noexcept {
  Call call;
  call.program = program;
  call.cuts = shape.grid.cuts();
  call.cuts.weights = memory.weights;
  call.tiles = shape.grid.tiles();
  call.input = memory.input;
  call.output = memory.output;
  call.scratch = memory.scratch;
  call.scratch_stride = shape.scratch_stride;
  call.scratch_of_strand = memory.scratch_of_strand;
  call.room = shape.room;
  if (arguments.own) std::copy_n(arguments.own->factor.data(), sizeof call.factor, call.factor);
  call.digest = arguments.digest;
  std::copy(std::begin(shape.shift), std::end(shape.shift), call.shifts);
  call.carry_form = shape.carry_form;
  call.dtype = arguments.dtype;
  call.reduction = arguments.reduction;
  call.partials = partials;
  call.direct = memory.direct;
  call.stop = memory.stop;
  call.report = memory.report;
  return call;
}

}  // namespace khoro::gpu
