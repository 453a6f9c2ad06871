// SPDX-License-Identifier: Apache-2.0
#include "threads.h"

#include <fmt/format.h>

#include <future>
#include <system_error>
#include <thread>
#include <vector>

#include "ranks.h"

namespace khoro::benchmark {

void run_on_threads(std::size_t count, const std::function<void(std::size_t)>& body) {
  std::promise<bool> gate;
  const std::shared_future<bool> open = gate.get_future().share();
  std::vector<std::thread> others;
  const auto join_all = [&] {
    for (std::thread& other : others) other.join();
  };
  others.reserve(count);
  try {
    for (std::size_t k = 1; k < count; ++k)
      others.emplace_back([&body, open, k] {
        if (open.get()) body(k);
      });
  } catch (const std::system_error& error) {
    gate.set_value(false);
    join_all();
    throw Failure(
        fmt::format("cannot start thread {} of {}: {}; use fewer (-t), or raise the limit "
                    "of processes (ulimit -u)",
                    others.size() + 2, count, error.what()));
  }
  gate.set_value(true);
  body(0);
  join_all();
}

}  // namespace khoro::benchmark
