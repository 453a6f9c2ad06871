// SPDX-License-Identifier: Apache-2.0
// Calls that are prepared once and made often.
#include <fmt/format.h>

#include <memory>
#include <utility>
#include <vector>

#include "api/groups.h"
#include "api/guard.h"
#include "api/handles.h"
#include "api/submit.h"
#include "base/error.h"

namespace khoro {
namespace {

using Calls = std::vector<PendingCall>;

struct PlanEntry : HandleEntry {
  static constexpr std::uint32_t kind = 3;
  static constexpr auto null_words = "the plan is NULL; make one with khoroPlanCreate";
  static constexpr auto stale_words =
      "the plan handle is stale or was never made; use each handle as khoroPlanCreate wrote it, "
      "and not after khoroPlanDestroy";
  static constexpr auto limit_words = "65,536 plans are in use";
  std::shared_ptr<const Calls> held;
};

/// Like that of communicators, it lives until the process ends.
auto& plans() {
  static auto* const table = new Handles<khoroPlan_t, PlanEntry>;
  return *table;
}

/// The calls of this thread's group, which is closed. If it throws, the group is as it was.
Calls take_group() {
  Group& group = Group::of_thread();
  if (group_depth != 1)
    throw Error(
        Code::invalid_usage,
        fmt::format("khoroPlanCreate ends the group whose calls it keeps, but {} groups are "
                    "open on this thread; call khoroGroupStart once, the calls, then "
                    "khoroPlanCreate",
                    group_depth));
  if (group.makes_communicators())
    throw Error(Code::invalid_usage,
                "a plan holds calls on communicators, but the group makes communicators; make them "
                "before");
  if (group.calls().empty())
    throw Error(Code::invalid_usage, "the group holds no call that a plan could keep");
  return group.calls();
}

/// With the stream where a call names none.
void launch(const Calls& calls, khoroStream_t stream) {
  const auto stream_of = [stream](const PendingCall& call) {
    return call.stream ? call.stream : stream;
  };
  if (group_depth > 0 || calls.size() == 1) {
    for (const PendingCall& call : calls) submit(call.handle, stream_of(call), Call(call.call));
    return;
  }
  if (!stream) return Group::run_calls(calls);
  Calls on_stream = calls;
  for (PendingCall& call : on_stream) call.stream = stream_of(call);
  Group::run_calls(on_stream);
}

}  // namespace
}  // namespace khoro

using khoro::guard;

khoroResult_t khoroPlanCreate(khoroPlan_t* plan) {
  return guard([&] {
    khoro::check_out(plan, "plan");
    auto calls = std::make_shared<const khoro::Calls>(khoro::take_group());
    *plan = khoro::plans().add(std::move(calls));
    khoro::Group::of_thread().drop_calls();
    khoro::group_depth = 0;
  });
}

khoroResult_t khoroPlanLaunch(khoroPlan_t plan, khoroStream_t stream) {
  return guard([&] {
    const std::shared_ptr<const khoro::Calls> calls = khoro::plans().pin(plan)->held;
    khoro::launch(*calls, stream);
  });
}

khoroResult_t khoroPlanDestroy(khoroPlan_t plan) {
  return guard([&] { khoro::plans().remove(plan); });
}
