// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "communicator/flight_report.h"
#include "communicator/witness.h"

namespace khoro {

/// Writes the report of a failed communicator to the log, where no launcher prints it: by the rank
/// that is the first to ask.
class LogWitness final : public Witness {
 public:
  /// `keep` holds the pages that `ranks` borrow; `first` is the page of rank 0.
  LogWitness(RankPage& first, std::vector<Sighting> ranks, std::shared_ptr<const void> keep)
      : first_(&first), ranks_(std::move(ranks)), keep_(std::move(keep)) {}

  void failed(const Cause& cause, const std::string& words) noexcept override;

 private:
  RankPage* first_;
  std::vector<Sighting> ranks_;
  std::shared_ptr<const void> keep_;
};

}  // namespace khoro
