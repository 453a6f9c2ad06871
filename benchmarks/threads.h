// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

namespace khoro::benchmark {

/// Runs body(0), body(1), ... at once on a thread each, the first on this one, and returns when all
/// have. Throws Failure when one cannot be started, and then none has begun.
void run_on_threads(std::size_t count, const std::function<void(std::size_t)>& body);

}  // namespace khoro::benchmark
