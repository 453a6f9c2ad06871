// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

namespace khoro {

/// Flows over links, each at the rate that is fair: no flow could have more without taking it from
/// one that has no more (max-min).
class Sharing {
 public:
  explicit Sharing(std::vector<double> capacities) : capacities_(std::move(capacities)) {}

  /// `links` is borrowed as long as the flow is there. A flow over no links ends at once.
  std::size_t add(const std::vector<int>& links, double bytes);
  /// Seconds until the next flow ends; infinite if there is none.
  double until_next_end();
  /// Lets so many seconds pass, not more than until_next_end(). Returns the flows that ended, in
  /// the order in which they were added.
  std::vector<std::size_t> advance(double seconds);

 private:
  struct Flow {
    std::size_t id;
    const std::vector<int>* links;
    double left;
    double rate = 0;
  };

  void share();

  std::vector<double> capacities_;
  std::vector<Flow> flows_;
  std::size_t next_id_ = 0;
  bool shared_ = true;
};

}  // namespace khoro
