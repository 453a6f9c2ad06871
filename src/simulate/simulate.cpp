// SPDX-License-Identifier: Apache-2.0
#include "simulate/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "plan/grid.h"
#include "plan/image.h"
#include "simulate/pipe.h"
#include "simulate/sharing.h"
#include "topology/path.h"

namespace khoro {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

std::vector<double> capacities(const Topology& topology) {
  std::vector<double> capacities;
  for (const Link& link : topology.links) capacities.push_back(link.bytes_per_second);
  return capacities;
}

/// Where a lane is.
struct Place {
  std::uint32_t stage = 0;
  std::size_t tile = 0;
};

class Play {
 public:
  Play(const Plan& plan, const Topology& topology, const SimulatedCall& call);
  Simulation run();

 private:
  struct Rank {
    Image image;
    std::vector<Place> places;  // by lane
    std::vector<int> tokens;
    std::vector<int> pipes;                          // by port
    std::vector<std::vector<std::size_t>> awaiting;  // lanes by token
  };
  int pipe_of(int from, int to, int index);
  void note_lanes(int rank);
  void wake(const Pipe& pipe) { awake_.insert(pipe.lanes.begin(), pipe.lanes.end()); }
  bool fire(int rank, std::size_t lane);
  bool ready(const Rank& rank, std::uint32_t first, std::uint32_t end) const;
  void run_step(int rank, std::size_t lane, std::uint32_t first, std::uint32_t end);
  void depart(int pipe, int lane, std::size_t bytes, bool put);
  /// Lets what waits in a pipe go, up to the first that takes time.
  void leave(int pipe);
  void arrive(const Flight& flight);
  std::size_t bytes_of(const Stage& stage, std::size_t tile) const;
  const Path& path_of(const Pipe& pipe);
  void fire_all();
  void pass_time();
  std::string who_waits() const;

  const Plan& plan_;
  const Topology& topology_;
  const SimulatedCall& call_;
  Grid grid_;
  std::vector<Rank> ranks_;
  std::vector<Pipe> pipes_;
  std::map<std::tuple<int, int, int>, int> pipe_numbers_;
  std::map<std::pair<int, int>, int> between_;  // pipes, by their ranks
  std::map<std::pair<int, int>, std::vector<Path>> paths_;
  Sharing sharing_;
  std::map<std::size_t, Flight> flights_;  // by flow
  std::multimap<double, Flight> landing_;  // by the time of arrival
  /// Lanes for which something has changed since they could not go on.
  std::set<LaneOf> awake_;
  double now_ = 0;
  Simulation simulation_;
};

Play::Play(const Plan& plan, const Topology& topology, const SimulatedCall& call)
    : plan_(plan), topology_(topology), call_(call), sharing_(capacities(topology)) {
  if (topology.ranks() != plan.collective.ranks)
    throw Error(Code::invalid_argument,
                fmt::format("plan {}: {} ranks on a topology that places {}", plan.name(),
                            plan.collective.ranks, topology.ranks()));
  const auto widest = static_cast<std::size_t>(std::max(plan.widest_message, 1));
  grid_ = Grid({plan.collective, plan.chunks, call.bytes, 1,
                std::max<std::size_t>(call.slot_bytes / widest, 1), nullptr, &plan.weights});
  simulation_.link_bytes.resize(topology.links.size());
  std::size_t messages_per_tile = 0;
  for (int rank = 0; rank < plan.collective.ranks; ++rank) {
    Rank made{flatten(plan, rank), {}, {}, {}, {}};
    for (const Image::Range& lane : made.image.lanes)
      made.places.push_back({lane.first, lane.first == lane.last ? grid_.tiles() : 0});
    made.tokens = made.image.token_counts;
    for (const Port& port : made.image.ports)
      made.pipes.push_back(port.sends ? pipe_of(rank, port.peer, port.index)
                                      : pipe_of(port.peer, rank, port.index));
    for (const Stage& stage : made.image.stages)
      messages_per_tile += stage.verb == Verb::send || stage.verb == Verb::put;
    ranks_.push_back(std::move(made));
    note_lanes(rank);
  }
  if (messages_per_tile > 0 && grid_.tiles() > most_simulated_messages / messages_per_tile)
    throw Error(Code::invalid_argument,
                fmt::format("{} tiles of {} messages: at most {} can be simulated; ask for fewer "
                            "bytes, or longer messages",
                            grid_.tiles(), messages_per_tile, most_simulated_messages));
}

int Play::pipe_of(int from, int to, int index) {
  const auto [place, is_new] =
      pipe_numbers_.try_emplace({from, to, index}, static_cast<int>(pipes_.size()));
  if (is_new) {
    pipes_.emplace_back();
    pipes_.back().from = from;
    pipes_.back().to = to;
    pipes_.back().number = between_[{from, to}]++;
  }
  return place->second;
}

/// Which lanes wait for what: for a pipe, and for a token.
void Play::note_lanes(int number) {
  Rank& rank = ranks_[static_cast<std::size_t>(number)];
  rank.awaiting.resize(rank.tokens.size());
  for (std::size_t lane = 0; lane < rank.places.size(); ++lane) {
    awake_.insert({number, lane});
    for (std::uint32_t i = rank.image.lanes[lane].first; i < rank.image.lanes[lane].last; ++i) {
      const Stage& stage = rank.image.stages[i];
      if (stage.verb == Verb::await)
        rank.awaiting[static_cast<std::size_t>(stage.token())].push_back(lane);
      if (!stage.has_channel()) continue;
      auto& lanes = pipes_[static_cast<std::size_t>(rank.pipes[rank.image.port_of_stage[i]])].lanes;
      if (const LaneOf user{number, lane};
          std::find(lanes.begin(), lanes.end(), user) == lanes.end())
        lanes.push_back(user);
    }
  }
}

/// Channels between the same ranks are dealt out to paths that are equally good.
const Path& Play::path_of(const Pipe& pipe) {
  const auto site = [this](int rank) { return topology_.place[static_cast<std::size_t>(rank)]; };
  const int from = site(pipe.from), to = site(pipe.to);
  const auto [place, is_new] = paths_.try_emplace({from, to});
  std::vector<Path>& paths = place->second;
  if (is_new) paths = equal_paths(topology_, from, to);
  if (paths.empty())
    throw Error(Code::invalid_argument,
                fmt::format("rank {} sends to rank {}, and nothing joins {} and {}", pipe.from,
                            pipe.to, topology_.site(from).name, topology_.site(to).name));
  return paths[static_cast<std::size_t>(pipe.number) % paths.size()];
}

std::size_t Play::bytes_of(const Stage& stage, std::size_t tile) const {
  std::size_t bytes = 0;
  for (std::int32_t chunk = stage.first; chunk < stage.last; ++chunk)
    bytes += grid_
                 .piece(stage.buffer == Buffer::scratch ? Buffer::output : stage.buffer,
                        stage.buffer == Buffer::scratch ? chunk % std::max(plan_.chunks, 1) : chunk,
                        tile)
                 .count;
  return bytes;
}

bool Play::ready(const Rank& rank, std::uint32_t first, std::uint32_t end) const {
  for (std::uint32_t i = first; i < end; ++i) {
    const Stage& stage = rank.image.stages[i];
    const Pipe* const pipe =
        stage.has_channel()
            ? &pipes_[static_cast<std::size_t>(rank.pipes[rank.image.port_of_stage[i]])]
            : nullptr;
    switch (stage.verb) {
      case Verb::await:
        if (rank.tokens[static_cast<std::size_t>(stage.token())] == 0) return false;
        break;
      case Verb::recv:
        if (!pipe->sent.ready()) return false;
        break;
      case Verb::take:
        if (!pipe->put.ready()) return false;
        break;
      case Verb::send:
        if (pipe->sent.size() >= call_.slots) return false;
        break;
      case Verb::put:
        if (pipe->windows == 0) return false;
        break;
      case Verb::offer:
        if (pipe->windows + pipe->put.size() >= call_.slots) return false;
        break;
      case Verb::read:
      case Verb::scale:
      case Verb::write:
      case Verb::signal:
        break;
    }
  }
  return true;
}

void Play::run_step(int number, std::size_t lane, std::uint32_t first, std::uint32_t end) {
  Rank& rank = ranks_[static_cast<std::size_t>(number)];
  std::size_t value = 0;  // bytes of the longest source
  for (std::uint32_t i = first; i < end; ++i) {
    const Stage& stage = rank.image.stages[i];
    const int pipe_number = stage.has_channel() ? rank.pipes[rank.image.port_of_stage[i]] : 0;
    switch (stage.verb) {
      case Verb::await:
        --rank.tokens[static_cast<std::size_t>(stage.token())];
        break;
      case Verb::signal:
        ++rank.tokens[static_cast<std::size_t>(stage.token())];
        for (const std::size_t waiting : rank.awaiting[static_cast<std::size_t>(stage.token())])
          awake_.insert({number, waiting});
        break;
      case Verb::read:
        value = std::max(value, bytes_of(stage, rank.places[lane].tile));
        break;
      case Verb::recv:
        value = std::max(value, pipes_[static_cast<std::size_t>(pipe_number)].sent.take());
        break;
      case Verb::take:
        value = std::max(value, pipes_[static_cast<std::size_t>(pipe_number)].put.take());
        break;
      case Verb::offer:
        ++pipes_[static_cast<std::size_t>(pipe_number)].windows;
        break;
      case Verb::send:
      case Verb::put:
        depart(pipe_number, static_cast<int>(lane), value, stage.verb == Verb::put);
        break;
      case Verb::scale:
      case Verb::write:
        break;
    }
    if (stage.has_channel()) wake(pipes_[static_cast<std::size_t>(pipe_number)]);
  }
}

void Play::depart(int number, int lane, std::size_t bytes, bool put) {
  Pipe& pipe = pipes_[static_cast<std::size_t>(number)];
  if (put) --pipe.windows;
  const std::size_t message = (put ? pipe.put : pipe.sent).add(bytes);
  pipe.waiting.push_back({number, message, put, {pipe.from, pipe.to, lane, bytes, now_, now_}});
  if (!pipe.leaving) leave(number);
}

void Play::leave(int number) {
  Pipe& pipe = pipes_[static_cast<std::size_t>(number)];
  if (!pipe.path) pipe.path = &path_of(pipe);
  const Path& path = *pipe.path;
  while (!pipe.waiting.empty() && !pipe.leaving) {
    Flight flight = std::move(pipe.waiting.front());
    pipe.waiting.pop_front();
    const auto bytes = static_cast<double>(flight.transfer.bytes);
    for (const int link : path.links)
      simulation_.link_bytes[static_cast<std::size_t>(link)] += bytes;
    if (bytes == 0 || path.links.empty()) {
      landing_.emplace(now_ + path.latency_seconds, std::move(flight));
    } else {
      pipe.leaving = true;
      flights_.emplace(sharing_.add(path.links, bytes), std::move(flight));
    }
  }
}

void Play::arrive(const Flight& flight) {
  Pipe& pipe = pipes_[static_cast<std::size_t>(flight.pipe)];
  (flight.put ? pipe.put : pipe.sent).arrive(flight.message);
  wake(pipe);
  simulation_.transfers.push_back(flight.transfer);
  simulation_.transfers.back().end = now_;
}

bool Play::fire(int number, std::size_t lane) {
  Rank& rank = ranks_[static_cast<std::size_t>(number)];
  Place& place = rank.places[lane];
  const Image::Range& range = rank.image.lanes[lane];
  if (place.tile == grid_.tiles()) return false;
  std::uint32_t end = place.stage;
  while (!(rank.image.stages[end++].flags & Stage::ends)) continue;
  if (!ready(rank, place.stage, end)) return false;
  run_step(number, lane, place.stage, end);
  place.stage = end;
  if (place.stage == range.last) place = {range.first, place.tile + 1};
  return true;
}

/// In the order of ranks and lanes, again and again, as if each were asked each time.
void Play::fire_all() {
  for (auto next = awake_.begin(); !awake_.empty(); next = awake_.begin())
    while (next != awake_.end()) {
      const LaneOf asked = *next;
      while (fire(asked.rank, asked.lane)) continue;
      awake_.erase(asked);
      next = awake_.upper_bound(asked);
    }
}

void Play::pass_time() {
  const double landing = landing_.empty() ? never : landing_.begin()->first;
  const double flow_end = now_ + sharing_.until_next_end();
  const double next = std::min(landing, flow_end);
  // To the end of the flow itself, not to a time that was rounded: it must end now.
  const auto ended =
      sharing_.advance(flow_end <= landing ? sharing_.until_next_end() : next - now_);
  now_ = next;
  for (const std::size_t flow : ended) {
    auto flight = flights_.extract(flow);
    const int number = flight.mapped().pipe;
    Pipe& pipe = pipes_[static_cast<std::size_t>(number)];
    landing_.emplace(now_ + pipe.path->latency_seconds, std::move(flight.mapped()));
    pipe.leaving = false;
    leave(number);
  }
  while (!landing_.empty() && landing_.begin()->first <= now_) {
    arrive(landing_.begin()->second);
    landing_.erase(landing_.begin());
  }
}

std::string Play::who_waits() const {
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
    for (std::size_t lane = 0; lane < ranks_[rank].places.size(); ++lane)
      if (const Place& place = ranks_[rank].places[lane]; place.tile != grid_.tiles())
        return fmt::format("rank {} lane {} waits in tile {} of {}", rank, lane, place.tile,
                           grid_.tiles());
  return {};
}

Simulation Play::run() {
  for (fire_all(); !flights_.empty() || !landing_.empty(); fire_all()) pass_time();
  simulation_.seconds = now_;
  simulation_.stuck = who_waits();
  return std::move(simulation_);
}

}  // namespace

Simulation simulate(const Plan& plan, const Topology& topology, const SimulatedCall& call) {
  return Play(plan, topology, call).run();
}

}  // namespace khoro
