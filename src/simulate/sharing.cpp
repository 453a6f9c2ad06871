// SPDX-License-Identifier: Apache-2.0
#include "simulate/sharing.h"

#include <algorithm>
#include <limits>

namespace khoro {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();
/// Of its length: what rounding may leave of a flow that has ended.
constexpr double rest = 1e-12;

}  // namespace

std::size_t Sharing::add(const std::vector<int>& links, double bytes) {
  flows_.push_back({next_id_, &links, bytes});
  shared_ = false;
  return next_id_++;
}

void Sharing::share() {
  if (shared_) return;
  shared_ = true;
  std::vector<double> left = capacities_;
  std::vector<int> users(capacities_.size());
  std::vector<Flow*> open;
  for (Flow& flow : flows_) {
    flow.rate = never;
    if (flow.links->empty()) continue;
    open.push_back(&flow);
    for (const int link : *flow.links) ++users[static_cast<std::size_t>(link)];
  }
  while (!open.empty()) {
    // The link that gives each of its flows least decides for these.
    std::size_t tightest = 0;
    double least = never;
    for (std::size_t link = 0; link < left.size(); ++link)
      if (users[link] > 0 && left[link] / users[link] < least) {
        least = left[link] / users[link];
        tightest = link;
      }
    const auto is_on_it = [tightest](const Flow* flow) {
      return std::find(flow->links->begin(), flow->links->end(), static_cast<int>(tightest)) !=
             flow->links->end();
    };
    const auto decided = std::stable_partition(open.begin(), open.end(),
                                               [&](const Flow* flow) { return !is_on_it(flow); });
    for (auto flow = decided; flow != open.end(); ++flow) {
      (*flow)->rate = least;
      for (const int link : *(*flow)->links) {
        left[static_cast<std::size_t>(link)] -= least;
        --users[static_cast<std::size_t>(link)];
      }
    }
    open.erase(decided, open.end());
  }
}

double Sharing::until_next_end() {
  share();
  double least = never;
  for (const Flow& flow : flows_)
    least = std::min(least, flow.left > 0 && flow.rate < never ? flow.left / flow.rate : 0);
  return least;
}

std::vector<std::size_t> Sharing::advance(double seconds) {
  share();
  std::vector<std::size_t> ended;
  for (Flow& flow : flows_) {
    const double moved = flow.rate < never ? flow.rate * seconds : flow.left;
    flow.left = flow.left - moved <= rest * moved ? 0 : flow.left - moved;
    if (flow.left == 0) ended.push_back(flow.id);
  }
  if (!ended.empty()) {
    std::erase_if(flows_, [](const Flow& flow) { return flow.left == 0; });
    shared_ = false;
  }
  return ended;
}

}  // namespace khoro
