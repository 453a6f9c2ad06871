// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <queue>
#include <vector>

namespace khoro {

/// Flows over links, each at the rate that is fair: no flow could have more without taking it from
/// one that has no more (max-min). A flow that comes or goes costs the time of those that share
/// links with it, directly or through others; what all others do is left alone.
class Sharing {
 public:
  explicit Sharing(std::vector<double> capacities);

  /// `links` is borrowed as long as the flow is there. A flow over no links ends at once.
  std::size_t add(const std::vector<int>& links, double bytes);
  /// Seconds until the next flow ends; infinite if there is none.
  double until_next_end();
  /// Lets so many seconds pass, not more than until_next_end(). Returns the flows that ended, in
  /// the order in which they were added.
  std::vector<std::size_t> advance(double seconds);

 private:
  struct Flow {
    std::size_t id = 0;
    const std::vector<int>* links = nullptr;
    double left = 0;   // bytes, at `since`
    double since = 0;  // when it got its rate
    double rate = 0;
    std::uint32_t changes = 0;  // of the rate, of all flows that were in this place
    std::uint32_t met = 0;      // the last round that it was part of
  };
  struct Wire {
    double capacity = 0;
    std::vector<std::size_t> flows;
    std::uint32_t met = 0;
    // While rates are found: what is not given away yet, and to how many.
    double left = 0;
    int users = 0;
  };
  /// When a flow ends, if its rate does not change before.
  struct End {
    double time = 0;
    std::size_t flow = 0;
    std::uint32_t changes = 0;
    bool operator>(const End& other) const noexcept { return time > other.time; }
  };
  template <class T>
  using Earliest = std::priority_queue<T, std::vector<T>, std::greater<>>;

  Wire& wire(int link) noexcept { return wires_[static_cast<std::size_t>(link)]; }
  std::size_t new_place();
  void share();
  void meet_neighbours();
  void divide();
  void give(Flow& flow, double rate);
  void remove(std::size_t place);
  bool is_over(const End& end) const noexcept;

  std::vector<Wire> wires_;  // by link
  std::vector<Flow> flows_;
  std::vector<std::size_t> free_;  // places in flows_
  std::vector<int> changed_;       // links that a flow came to or left since rates were found
  std::vector<int> met_wires_;     // of this round
  std::vector<std::size_t> met_flows_;
  Earliest<End> ends_;
  double now_ = 0;
  std::size_t next_id_ = 0;
  std::uint32_t round_ = 0;
};

}  // namespace khoro
