// SPDX-License-Identifier: Apache-2.0
#include "api/groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <future>
#include <span>
#include <thread>
#include <utility>

#include "api/guard.h"
#include "api/handle_table.h"
#include "api/new_handles.h"
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

/// Lets the other ranks know of what is being handled, in the place of the inits that have not
/// begun, and throws it on.
[[noreturn]] void decline_and_throw(std::span<const PendingInit> inits) {
  const Error reason = handled_error("no memory left for an init");
  for (const PendingInit& init : inits)
    if (init.decline) init.decline(reason);
  throw;
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
  } catch (...) {
    decline_and_throw(std::span(this, 1));
  }
}

khoroResult_t Group::run() {
  auto inits = std::exchange(inits_, {});
  const auto calls = std::exchange(calls_, {});
  std::stable_partition(inits.begin(), inits.end(),
                        [](const PendingInit& init) { return !init.chosen.blocking; });
  const std::span<const PendingInit> all(inits);
  NewHandles begun;
  for (const PendingInit& init : all) {
    if (init.chosen.blocking) break;
    try {
      begun.add([&] { return init.start(); });
    } catch (...) {
      decline_and_throw(all.subspan(begun.size() + 1));  // it has let them know itself
    }
  }
  const auto blocking = all.subspan(begun.size());
  run_blocking(blocking);
  begun.give_out([&](std::size_t i) { return all[i].out; });
  run_calls(calls);
  return blocking.size() == all.size() ? khoroSuccess : khoroInProgress;
}

void Group::run_blocking(std::span<const PendingInit> inits) {
  std::vector<std::unique_ptr<Communicator>> made(inits.size());
  std::vector<std::exception_ptr> errors(inits.size());
  try {
    std::vector<Make> makes;
    for (const PendingInit& init : inits) makes.push_back(init.begin());
    // They may be ranks of one communicator, which wait for each other.
    run_at_once(inits.size(), [&](std::size_t i) {
      try {
        made[i] = makes[i](nullptr);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    });
  } catch (...) {
    decline_and_throw(inits);
  }
  if (const std::exception_ptr error = cause_among(errors)) std::rethrow_exception(error);
  NewHandles added;
  for (std::size_t i = 0; i < inits.size(); ++i)
    added.add([&] { return handles().add(std::move(made[i]), inits[i].chosen); });
  added.give_out([&](std::size_t i) { return inits[i].out; });
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
