// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <khoro/khoro.h>

#include <stdexcept>
#include <string_view>
#include <vector>

#include "options.h"

namespace khoro::benchmark {

/// A call of Khoro that failed, with its words.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Throws a Failure unless `result` is success.
void check(khoroResult_t result, std::string_view call, khoroComm_t comm = nullptr);

/// Joins all ranks of this process: as the launcher says, else as threads of this process alone.
/// One communicator per thread; the caller destroys them. Throws Failure.
std::vector<khoroComm_t> join(const Options& options);

}  // namespace khoro::benchmark
