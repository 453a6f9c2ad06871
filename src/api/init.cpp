// SPDX-License-Identifier: Apache-2.0
#include "communicator/init.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "api/groups.h"
#include "api/guard.h"
#include "api/handle_table.h"
#include "base/error.h"

using khoro::Code;
using khoro::Communicator;
using khoro::Error;
using khoro::guard;
using khoro::handles;

namespace {

void check_ranks(int ranks, int rank) {
  if (ranks < 1)
    throw Error(Code::invalid_argument,
                fmt::format("a communicator of {} ranks; there must be at least 1", ranks));
  if (rank < 0 || rank >= ranks)
    throw Error(Code::invalid_argument,
                fmt::format("rank {} of {} ranks; it must be 0 to {}", rank, ranks, ranks - 1));
}

/// Makes a communicator now, or at the end of the group.
void make(khoroComm_t* out, khoro::Group::Init init) {
  if (khoro::group_depth > 0)
    khoro::Group::of_thread().add(out, std::move(init));
  else
    *out = handles().add(init.make());
}

}  // namespace

khoroResult_t khoroGetUniqueId(khoroUniqueId* id) {
  return guard([&] {
    khoro::check_out(id, "id");
    const std::array<char, 128> bytes = khoro::make_unique_id();
    std::copy(bytes.begin(), bytes.end(), id->internal);
  });
}

khoroResult_t khoroCommInitRank(khoroComm_t* comm, int nranks, khoroUniqueId id, int rank) {
  return guard([&] {
    khoro::check_out(comm, "comm");
    check_ranks(nranks, rank);
    std::array<char, 128> bytes;
    std::copy(std::begin(id.internal), std::end(id.internal), bytes.begin());
    make(comm, {[=] { return khoro::init_rank(bytes, nranks, rank); },
                [=](const Error& reason, khoro::Time until) {
                  khoro::decline_rank(bytes, nranks, rank, reason, until);
                }});
  });
}

khoroResult_t khoroCommInitWorld(khoroComm_t* comm) {
  return guard([&] {
    khoro::check_out(comm, "comm");
    const int thread = khoro::claim_thread_of_world();
    make(comm, {[=] { return khoro::init_world(thread); },
                [=](const Error& reason, khoro::Time until) {
                  khoro::decline_world(thread, reason, until);
                }});
  });
}

khoroResult_t khoroCommInitAllHost(khoroComm_t* comms, int n) {
  return guard([&] {
    khoro::check_out(comms, "comms");
    check_ranks(n, 0);
    std::vector<khoroComm_t> made;
    made.reserve(static_cast<std::size_t>(n));
    for (auto& communicator : khoro::init_all_host(n))
      made.push_back(handles().add(std::move(communicator)));
    std::copy(made.begin(), made.end(), comms);
  });
}

khoroResult_t khoroCommDestroy(khoroComm_t comm) {
  return guard([&] { const std::unique_ptr<Communicator> communicator = handles().remove(comm); });
}
