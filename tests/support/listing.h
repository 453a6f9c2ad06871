// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "plan/program.h"

namespace khoro::test {

/// One rank's program written out.
struct RankListing {
  std::vector<Token> tokens;
  std::vector<std::vector<Step>> lanes;
};

/// A plan written out. Plans that differ in one rank share the others.
using Listing = std::vector<std::shared_ptr<const RankListing>>;

inline Listing list(const Plan& plan) {
  Listing listing;
  for (int rank = 0; rank < plan.collective.ranks; ++rank) {
    Program program = plan.program(rank);
    RankListing steps{program.tokens, {}};
    for (Lane& lane : program.lanes) {
      steps.lanes.emplace_back();
      while (const Step* step = lane.next()) steps.lanes.back().push_back(*step);
    }
    listing.push_back(std::make_shared<const RankListing>(std::move(steps)));
  }
  return listing;
}

inline Lane listed_lane(std::shared_ptr<const RankListing> rank, std::size_t lane) {
  for (const Step& step : rank->lanes[lane]) co_yield Step(step);
}

/// What makes the programs of a plan out of its listing.
inline std::function<Program(int)> programs(Listing listing) {
  return [listing = std::move(listing)](int rank) {
    const std::shared_ptr<const RankListing>& steps = listing[static_cast<std::size_t>(rank)];
    Program program;
    program.tokens = steps->tokens;
    for (std::size_t lane = 0; lane < steps->lanes.size(); ++lane)
      program.lanes.push_back(listed_lane(steps, lane));
    return program;
  };
}

}  // namespace khoro::test
