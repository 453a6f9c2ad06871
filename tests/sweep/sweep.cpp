// SPDX-License-Identifier: Apache-2.0
// Draws the cases of a sweep, and plays them as a rank of a job. sweep.py runs it, once to draw,
// and under `khoro run` to play once for each way in which ranks live.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <fstream>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/settings.h"
#include "sweep/axes.h"
#include "sweep/last_case.h"
#include "sweep/player.h"
#include "sweep/space.h"
#include "sweep/tally.h"

using namespace khoro;
using namespace khoro::test;

namespace {

struct Options {
  std::uint64_t seed = 1;
  std::vector<std::string> only;
  std::string cases;
  // Of draw.
  bool pairs = false;
  std::uint64_t points = 0;
  // Of play.
  std::string living;
  int exhaustive = 0;
  std::string tally;
};

Settings settings_in_force() {
  Settings settings;
  settings.choose(sweep_settings);
  return settings;
}

Point pinned_by(const Space& space, const std::vector<std::string>& assignments) {
  Point point = space.open_point();
  for (const std::string& each : assignments)
    if (!choose_value(space, each, point))
      throw std::runtime_error("--only " + each + ": no axis has such a value");
  return point;
}

/// A random point. What has weights is drawn by them; its collective first, for half of them would
/// have a root else, and few a reduction; then its algorithm, for few would be one that does not
/// fold in rank order.
Point draw_point(const Space& space, const Point& pinned, Random& random) {
  for (int tries = 0; tries < 1000; ++tries) {
    Point point = pinned;
    for (std::size_t axis = 0; axis < point.size(); ++axis) {
      const std::vector<int>& weights = space.axes[axis].weights;
      if (point[axis] == unchosen && !weights.empty())
        point[axis] = std::discrete_distribution<int>(weights.begin(), weights.end())(random);
    }
    const auto choose_first = [&](Axis axis) {
      return point[at(axis)] != unchosen || choose(space, point, at(axis), random);
    };
    if (choose_first(Axis::collective) && choose_first(Axis::algorithm) &&
        complete(space, point, random) == nullptr)
      return point;
  }
  throw std::runtime_error("no point agrees with what --only says");
}

/// Tells who adds up which values and pairs there are, and why others are not.
void print_space(const Space& space, const Cover& cover) {
  for (const Space::Axis& axis : space.axes)
    fmt::print("axis\t{}\t{}\n", axis.name, fmt::join(axis.values, "\t"));
  for (const auto& [pair, rule] : cover.impossible)
    fmt::print("impossible\t{}\t{}\t{}\t{}\t{}\n", space.axes[pair.axis].name,
               space.axes[pair.axis].values[static_cast<std::size_t>(pair.value)],
               space.axes[pair.other_axis].name,
               space.axes[pair.other_axis].values[static_cast<std::size_t>(pair.other_value)],
               rule->why);
}

void draw(const Options& options) {
  PlanBook book(settings_in_force());
  const Space space = make_space(book);
  const Point pinned = pinned_by(space, options.only);
  const Cover covering = options.pairs ? cover(space, pinned, options.seed) : Cover();
  print_space(space, covering);
  std::vector<Point> points = covering.points;
  Random random(options.seed);
  for (std::uint64_t i = 0; i < options.points; ++i)
    points.push_back(draw_point(space, pinned, random));
  std::ofstream file(options.cases);
  std::uint64_t seed = options.seed;
  for (const Point& point : points) file << to_line(space, {point, seed = mix(seed)}) << '\n';
  if (!file.flush()) throw std::runtime_error("cannot write " + options.cases);
}

/// Those of a file that live as this job does.
DrawsOf draws_of_file(const Space& space, const Options& options) {
  std::map<Point, std::vector<Draw>> draws;  // by the point of the communicator
  std::ifstream file(options.cases);
  if (!file) throw std::runtime_error("cannot read " + options.cases);
  for (std::string line; std::getline(file, line);) {
    std::optional<Draw> drawn = parse_line(space, line);
    if (!drawn) throw std::runtime_error("no case: " + line);
    const int living = drawn->point[at(Axis::living)];
    if (space.axes[at(Axis::living)].values[static_cast<std::size_t>(living)] == options.living)
      draws[communicator_of(space, drawn->point)].push_back(*std::move(drawn));
  }
  return [draws = std::move(draws)](const Point& communicator) {
    const auto found = draws.find(communicator);
    return found == draws.end() ? std::vector<Draw>() : found->second;
  };
}

/// Every point there is, for up to so many ranks.
DrawsOf all_draws(const Space& space, const Options& options, Tally& tally) {
  const Point pinned = pinned_by(space, options.only);
  return [&, pinned](const Point& communicator) {
    std::vector<Draw> draws;
    Point fixed = communicator;
    choose_value(space, "living=" + options.living, fixed);
    if (fixed[at(Axis::ranks)] >= options.exhaustive) return draws;
    for (std::size_t axis = 0; axis < fixed.size(); ++axis) {
      if (pinned[axis] == unchosen) continue;
      if (fixed[axis] != unchosen && fixed[axis] != pinned[axis]) return draws;
      fixed[axis] = pinned[axis];
    }
    for_each_point(
        space, fixed,
        [&](const Point& point) {
          draws.push_back({point, mix(options.seed + draws.size())});
        },
        [&](const Space::Rule& rule, std::uint64_t points) { tally.skipped(rule, points); });
    return draws;
  };
}

int play(const Options& options) {
  show_case_at_fault();
  const Settings launched = Settings::from_environment();
  PlanBook book(settings_in_force());
  const Space space = make_space(book);
  const int first = static_cast<int>(launched.rank);
  const int threads = static_cast<int>(launched.threads);
  Table table(space, book, first, threads);
  DrawsOf from_file;
  if (options.exhaustive == 0) from_file = draws_of_file(space, options);
  std::vector<Tally> skipped(static_cast<std::size_t>(threads), Tally(space));
  std::vector<std::thread> ranks;
  for (int thread = 0; thread < threads; ++thread) {
    // Rank 0 alone counts what is left out.
    Tally& tally = first + thread == 0 ? table.tally() : skipped[static_cast<std::size_t>(thread)];
    const DrawsOf draws = options.exhaustive == 0 ? from_file : all_draws(space, options, tally);
    ranks.emplace_back([&table, &options, draws] {
      try {
        Player(table, draws, options.exhaustive > 0).play();
      } catch (const std::exception& error) {
        fmt::print("wrong: {}\n", error.what());
        std::fflush(stdout);
        std::_Exit(1);  // the launcher ends the other ranks
      }
    });
  }
  for (std::thread& rank : ranks) rank.join();
  if (first == 0) table.tally().write(options.tally);
  return table.all_right() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App program("Draws and plays the cases of a sweep");
  program.require_subcommand(1);
  CLI::App* drawing = program.add_subcommand("draw", "Write cases, one a line");
  CLI::App* playing = program.add_subcommand("play", "Play cases as a rank of `khoro run`");
  drawing->add_flag("--pairs", options.pairs, "points in which every pair of values occurs");
  drawing->add_option("--points", options.points, "as many random points");
  drawing->add_option("--seed", options.seed, "of all that is random");
  for (CLI::App* command : {drawing, playing})
    command->add_option("--only", options.only, "AXIS=VALUE: a value that all points have");
  drawing->add_option("--cases", options.cases, "the file to write")->required();
  playing->add_option("--living", options.living, "how the ranks of this job live")->required();
  playing->add_option("--cases", options.cases, "the file of cases");
  playing->add_option("--exhaustive", options.exhaustive, "every case up to so many ranks instead");
  playing->add_option("--seed", options.seed, "of the data of an exhaustive sweep");
  playing->add_option("--tally", options.tally, "where rank 0 writes what it played")->required();
  CLI11_PARSE(program, argc, argv);
  try {
    if (playing->parsed()) return play(options);
    draw(options);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "sweep: {}\n", error.what());
    return 2;
  }
}
