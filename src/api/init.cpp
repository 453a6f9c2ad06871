// SPDX-License-Identifier: Apache-2.0
#include "communicator/init.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "api/config.h"
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

/// Joins now, or at the end of the group.
void join(khoroComm_t* out, const khoro::Place& place, const khoro::Chosen& chosen) {
  const auto make = [place, settings = chosen.settings] { return khoro::join(place, settings); };
  const auto decline = [place](const Error& reason, khoro::Time until) {
    khoro::decline(place, reason, until);
  };
  if (khoro::group_depth > 0)
    khoro::Group::of_thread().add(out, {make, decline});
  else
    *out = handles().add(make());
}

}  // namespace

khoroResult_t khoroGetUniqueId(khoroUniqueId* id) {
  return guard([&] {
    khoro::check_out(id, "id");
    const std::array<char, 128> bytes = khoro::make_unique_id();
    std::copy(bytes.begin(), bytes.end(), id->internal);
  });
}

khoroResult_t khoroCommInitRankConfig(khoroComm_t* comm, int nranks, khoroUniqueId id, int rank,
                                      const khoroConfig_t* config) {
  return guard([&] {
    khoro::check_out(comm, "comm");
    check_ranks(nranks, rank);
    const khoro::Chosen chosen = khoro::chosen_by(config);
    std::array<char, 128> bytes;
    std::copy(std::begin(id.internal), std::end(id.internal), bytes.begin());
    join(comm, khoro::place_at(bytes, nranks, rank), chosen);
  });
}

khoroResult_t khoroCommInitRank(khoroComm_t* comm, int nranks, khoroUniqueId id, int rank) {
  return khoroCommInitRankConfig(comm, nranks, id, rank, nullptr);
}

khoroResult_t khoroCommInitWorldConfig(khoroComm_t* comm, const khoroConfig_t* config) {
  return guard([&] {
    khoro::check_out(comm, "comm");
    const khoro::Chosen chosen = khoro::chosen_by(config);
    join(comm, khoro::next_place_in_world(), chosen);
  });
}

khoroResult_t khoroCommInitWorld(khoroComm_t* comm) {
  return khoroCommInitWorldConfig(comm, nullptr);
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
