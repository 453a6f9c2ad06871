// SPDX-License-Identifier: Apache-2.0
#include "api/groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <future>
#include <thread>
#include <utility>

#include "api/guard.h"
#include "api/handle_table.h"
#include "base/error.h"
#include "base/thread.h"

namespace khoro {
namespace {

/// Runs `run(0)`, `run(1)`, ... on a thread each, the first on this one, and waits for all. None
/// begins before every thread has been started: if one cannot be, the others would wait for it.
/// Throws `Error` then.
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
      others.push_back(start_thread("init", [&run, started, i] {
        if (started.get()) run(i);
      }));
  } catch (const Error& error) {
    start.set_value(false);
    join_all();
    throw Error(Code::system_error,
                fmt::format("cannot start {} threads for the inits of a group: {}", count - 1,
                            error.what()));
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

khoroComm_t PendingInit::start() const {
  try {
    if (!without) return handles().add(begin(), chosen);
    handles().take_part(without, begin());
    return nullptr;
  } catch (const Error& error) {
    if (decline) decline(error);
    throw;
  }
}

khoroResult_t Group::run() {
  auto inits = std::exchange(inits_, {});
  const auto calls = std::exchange(calls_, {});
  const auto at_once = std::stable_partition(
      inits.begin(), inits.end(), [](const PendingInit& init) { return init.chosen.blocking; });
  std::vector<khoroComm_t> begun;
  try {
    for (auto init = at_once; init != inits.end(); ++init) begun.push_back(init->start());
    run_blocking({inits.begin(), at_once});
  } catch (...) {
    for (khoroComm_t handle : begun)
      if (handle) handles().remove(handle);
    throw;
  }
  std::size_t next = 0;
  for (auto init = at_once; init != inits.end(); ++init) *init->out = begun[next++];
  run_calls(calls);
  return begun.empty() ? khoroSuccess : khoroInProgress;
}

void Group::run_blocking(const std::vector<PendingInit>& inits) {
  std::vector<Make> makes;
  for (const PendingInit& init : inits) makes.push_back(init.begin());
  std::vector<std::unique_ptr<Communicator>> made(inits.size());
  std::vector<std::exception_ptr> errors(inits.size());
  const auto run = [&](std::size_t i) {
    try {
      made[i] = makes[i](nullptr);
    } catch (...) {
      errors[i] = std::current_exception();
    }
  };
  try {
    // They may be ranks of one communicator, which wait for each other.
    run_at_once(inits.size(), run);
  } catch (const Error& error) {
    for (const PendingInit& init : inits)
      if (init.decline) init.decline(error);
    throw;
  }
  if (const std::exception_ptr error = cause_among(errors)) std::rethrow_exception(error);
  std::vector<khoroComm_t> handles_made;
  for (std::size_t i = 0; i < inits.size(); ++i)
    handles_made.push_back(handles().add(std::move(made[i]), inits[i].chosen));
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
    return --depth == 0 ? khoro::Group::of_thread().run() : khoroSuccess;
  });
}
