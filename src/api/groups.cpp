// SPDX-License-Identifier: Apache-2.0
#include "api/groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <future>
#include <system_error>
#include <thread>
#include <utility>

#include "api/guard.h"
#include "api/handle_table.h"
#include "base/error.h"
#include "base/system.h"

namespace khoro {
namespace {

/// Runs `run(0)`, `run(1)`, ... on a thread each, the first on this one, and waits for all. None
/// begins before every thread has been started: if one cannot be, the others would wait for it.
/// Throws system_error then.
template <class Run>
void run_at_once(std::size_t count, Run run) {
  std::promise<bool> start;
  const std::shared_future<bool> started = start.get_future().share();
  std::vector<std::thread> others;
  const auto join_all = [&others] {
    for (std::thread& other : others) other.join();
  };
  try {
    others.reserve(count);
    for (std::size_t i = 1; i < count; ++i)
      others.emplace_back([&run, started, i] {
        if (started.get()) run(i);
      });
  } catch (const std::system_error& error) {
    start.set_value(false);
    join_all();
    throw Error(Code::system_error,
                fmt::format("cannot start {} threads for the inits of a group: {}; raise the limit "
                            "of processes (ulimit -u) or of memory",
                            count - 1, error.what()));
  } catch (...) {
    start.set_value(false);
    join_all();
    throw;
  }
  start.set_value(true);
  if (count > 0) run(0);
  join_all();
}

/// What failed here itself, rather than what other ranks of the group saw of it; null if nothing
/// did.
std::exception_ptr cause_among(const std::vector<std::exception_ptr>& errors) {
  std::exception_ptr seen;
  for (const std::exception_ptr& error : errors) {
    if (!error) continue;
    try {
      std::rethrow_exception(error);
    } catch (const Error& words) {
      const Code code = words.code();
      if (code != Code::timeout && code != Code::remote_error && code != Code::peer_died)
        return error;
      if (!seen) seen = error;
    } catch (...) {
      return error;
    }
  }
  return seen;
}

}  // namespace

Group& Group::of_thread() noexcept {
  static thread_local Group group;
  return group;
}

void Group::run() {
  const auto inits = std::exchange(inits_, {});
  const auto calls = std::exchange(calls_, {});
  run_inits(inits);
  run_calls(calls);
}

void Group::run_inits(std::vector<PendingInit> inits) {
  std::vector<std::unique_ptr<Communicator>> made(inits.size());
  std::vector<std::exception_ptr> errors(inits.size());
  const auto run = [&](std::size_t i) {
    try {
      made[i] = inits[i].init.make();
    } catch (...) {
      errors[i] = std::current_exception();
    }
  };
  try {
    // They may be ranks of one communicator, which wait for each other.
    run_at_once(inits.size(), run);
  } catch (const Error& error) {
    const Time until = machine().now() + std::chrono::seconds(2);
    for (const PendingInit& pending : inits) pending.init.decline(error, until);
    throw;
  }
  if (const std::exception_ptr error = cause_among(errors)) std::rethrow_exception(error);
  std::vector<khoroComm_t> handles_made;
  for (auto& communicator : made) handles_made.push_back(handles().add(std::move(communicator)));
  for (std::size_t i = 0; i < inits.size(); ++i) *inits[i].out = handles_made[i];
}

}  // namespace khoro

khoroResult_t khoroGroupStart(void) {
  return khoro::guard([] { ++khoro::group_depth; });
}

khoroResult_t khoroGroupEnd(void) {
  return khoro::guard([] {
    int& depth = khoro::group_depth;
    if (depth == 0)
      throw khoro::Error(khoro::Code::invalid_usage,
                         "khoroGroupEnd without khoroGroupStart on this thread");
    if (--depth == 0) khoro::Group::of_thread().run();
  });
}
