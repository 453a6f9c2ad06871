// SPDX-License-Identifier: Apache-2.0
#include "communicator/log_witness.h"

#include <fmt/format.h>

#include "base/log.h"
#include "base/process_stat.h"

namespace khoro {

void LogWitness::failed(const Cause& cause, const std::string&) noexcept {
  if (!logs(LogLevel::error) || !first_->claim_report()) return;
  try {
    std::vector<Sighting> seen = ranks_;
    for (Sighting& rank : seen) {
      const auto stat = stat_of(rank.pid);
      if (!stat || stat->ended())
        rank.process = ProcessState::ended;
      else if (stat->stopped())
        rank.process = ProcessState::stopped;
    }
    const auto groups = group(account_for(seen, cause));
    log(LogLevel::error, "report of {} ranks: {}", seen.size(), headline(groups));
    for (const std::string& line : lines_of(groups)) log(LogLevel::error, "report: {}", line);
  } catch (const std::exception& error) {
    log(LogLevel::error, "no report can be made: {}", error.what());
  }
}

}  // namespace khoro
