// SPDX-License-Identifier: Apache-2.0
#include "plan/image.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <unordered_map>

#include "base/hash.h"

namespace khoro {
namespace {

/// Gives each port its place in the image's list, in order of first use.
class PortIndex {
 public:
  explicit PortIndex(std::vector<Port>& ports) : ports_(ports) {}

  std::uint32_t of(const Port& port) {
    // A step mostly uses the ports of the step before it.
    std::uint32_t& last = last_[port.sends ? 1 : 0];
    if (last < ports_.size() && ports_[last] == port) return last;
    const std::uint64_t key =
        static_cast<std::uint64_t>(static_cast<std::uint32_t>(port.peer)) << 9 |
        static_cast<std::uint64_t>(port.index) << 1 | static_cast<std::uint64_t>(port.sends);
    const auto [place, fresh] = places_.try_emplace(key, static_cast<std::uint32_t>(ports_.size()));
    if (fresh) ports_.push_back(port);
    return last = place->second;
  }

 private:
  std::vector<Port>& ports_;
  std::array<std::uint32_t, 2> last_{};
  std::unordered_map<std::uint64_t, std::uint32_t> places_;
};

/// Offering a window and filling one are the two ends of a channel, as receiving and sending are.
bool sends(Verb verb) noexcept { return verb == Verb::send || verb == Verb::put; }

void append(Image& image, PortIndex& ports, const Step& step, std::uint8_t lane) {
  for (Stage stage : step.stages()) {
    std::uint32_t port = 0;
    if (stage.has_channel()) {
      if (stage.index == own_lane) stage.index = lane;
      port = ports.of({stage.peer(), stage.index, sends(stage.verb)});
    }
    if (stage.has_span() && stage.buffer == Buffer::scratch)
      image.scratch_chunks = std::max(image.scratch_chunks, static_cast<int>(stage.last));
    stage.flags &= static_cast<std::uint8_t>(~Stage::ends);
    image.stages.push_back(stage);
    image.port_of_stage.push_back(port);
  }
  image.stages.back().flags |= Stage::ends;
}

std::uint64_t word(const Stage& stage, int half) noexcept {
  const auto u = [](auto value) { return static_cast<std::uint64_t>(value); };
  if (half == 0)
    return u(stage.verb) | u(stage.buffer) << 8 | u(stage.flags) << 16 | u(stage.index) << 24 |
           u(static_cast<std::uint32_t>(stage.peer_or_token)) << 32;
  return u(static_cast<std::uint32_t>(stage.first)) | u(static_cast<std::uint32_t>(stage.last))
                                                          << 32;
}

std::uint64_t program_hash(const Image& image) noexcept {
  std::uint64_t hash = combine(image.stages.size(), image.lanes.size());
  for (const Image::Range& lane : image.lanes) hash = combine(hash, lane.last);
  for (std::size_t i = 0; i < image.weights.size(); ++i) hash = combine(hash, image.weights.of(i));
  for (int count : image.token_counts) hash = combine(hash, static_cast<std::uint64_t>(count));
  for (const Stage& stage : image.stages)
    hash = combine(combine(hash, word(stage, 0)), word(stage, 1));
  return hash;
}

}  // namespace

Image flatten(const Plan& plan, int rank) {
  Image image;
  image.rank = rank;
  image.chunks = plan.chunks;
  image.weights = plan.weights;
  image.widest_message = plan.widest_message;
  image.lends_in_place = plan.lends_in_place;
  PortIndex ports(image.ports);
  Program program = plan.program(rank);
  for (const Token& token : program.tokens) image.token_counts.push_back(token.count);
  for (std::size_t lane = 0; lane < program.lanes.size(); ++lane) {
    const auto first = static_cast<std::uint32_t>(image.stages.size());
    while (const Step* step = program.lanes[lane].next())
      append(image, ports, *step, static_cast<std::uint8_t>(lane));
    image.lanes.push_back({first, static_cast<std::uint32_t>(image.stages.size())});
  }
  image.hash = program_hash(image);
  return image;
}

}  // namespace khoro
