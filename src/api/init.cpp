// SPDX-License-Identifier: Apache-2.0
#include "communicator/init.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "api/config.h"
#include "api/groups.h"
#include "api/guard.h"
#include "api/handle_table.h"
#include "api/new_handles.h"
#include "base/error.h"
#include "base/system.h"
#include "communicator/form.h"

using khoro::Code;
using khoro::Communicator;
using khoro::Error;
using khoro::guard;
using khoro::handles;
using khoro::Make;

namespace {

void check_ranks(int ranks, int rank) {
  if (ranks < 1)
    throw Error(Code::invalid_argument,
                fmt::format("a communicator of {} ranks; there must be at least 1", ranks));
  if (rank < 0 || rank >= ranks)
    throw Error(Code::invalid_argument,
                fmt::format("rank {} of {} ranks; it must be 0 to {}", rank, ranks, ranks - 1));
}

/// Makes a communicator now, at the end of the group, or behind its handle.
khoroResult_t make(khoro::PendingInit init) {
  if (khoro::group_depth > 0) {
    khoro::Group::of_thread().add(std::move(init));
    return khoroSuccess;
  }
  if (init.chosen.blocking) {
    *init.out = handles().add(init.begin()(nullptr), init.chosen);
    return khoroSuccess;
  }
  *init.out = init.start();
  return khoroInProgress;
}

khoroResult_t join(khoroComm_t* out, const khoro::Place& place, const khoro::Chosen& chosen) {
  const Make join_there = [place, settings = chosen.settings](const khoro::Interrupt* interrupt) {
    return khoro::join(place, settings, interrupt);
  };
  const auto decline = [place](const Error& reason) {
    khoro::decline(place, reason, khoro::machine().now() + std::chrono::seconds(2));
  };
  return make({out, chosen, [join_there] { return join_there; }, decline});
}

std::unique_ptr<Communicator> meet(khoro::Arrival* arrival, const khoro::Interrupt* interrupt) {
  return arrival ? arrival->meet(interrupt) : nullptr;
}

/// The caller's function as an exchange that throws.
khoro::Exchange over(khoroAllGatherFn exchange, void* context, int rank) {
  return [=](const void* mine, void* all, std::size_t bytes) {
    const khoroResult_t result = exchange(context, mine, all, bytes);
    if (result == khoroSuccess) return;
    throw Error(khoro::code_of(static_cast<int>(result), Code::invalid_usage),
                fmt::format("the exchange given to khoroCommInitOver returned {} ({}) on rank {}",
                            static_cast<int>(result), khoroGetErrorString(result), rank));
  };
}

/// A communicator that is claimed for a split, until the split needs it no more.
class Parent {
 public:
  Parent(khoroComm_t handle, const khoro::Chosen& chosen)
      : claim_(handles().claim(handle)), blocking_(chosen.blocking) {
    if (!chosen.blocking) claim_.go_on_in_background();
  }
  ~Parent() { give_back(); }
  Communicator& operator*() const noexcept { return *claim_; }
  void give_back() noexcept {
    khoro::HandleTable::Claim claim = std::move(claim_);
    if (claim && !blocking_) handles().end_in_background(std::move(claim));
  }

 private:
  khoro::HandleTable::Claim claim_;
  bool blocking_;
};
/// Why a communicator has failed, if it has: then the others of its split have not come for that
/// reason.
std::optional<Error> cause_of(khoroComm_t parent) {
  try {
    const auto pin = handles().pin(parent);
    Communicator* const communicator = pin.communicator();
    if (communicator && communicator->async_error() != Code::success) communicator->throw_cause();
  } catch (const Error& error) {
    if (error.code() != Code::invalid_argument) return error;  // else it is no more
  }
  return std::nullopt;
}

struct Returning {
  Parent& parent;
  ~Returning() { parent.give_back(); }
};

/// Gives rank r's handle to comms[r].
void give_out(khoroComm_t* comms, std::vector<std::unique_ptr<Communicator>> communicators) {
  khoro::NewHandles made;
  for (auto& communicator : communicators)
    made.add([&] { return handles().add(std::move(communicator), {}); });
  made.give_out([comms](std::size_t i) { return comms + i; });
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
    return join(comm, khoro::place_at(bytes, nranks, rank), chosen);
  });
}

khoroResult_t khoroCommInitRank(khoroComm_t* comm, int nranks, khoroUniqueId id, int rank) {
  return khoroCommInitRankConfig(comm, nranks, id, rank, nullptr);
}

khoroResult_t khoroCommInitWorldConfig(khoroComm_t* comm, const khoroConfig_t* config) {
  return guard([&] {
    khoro::check_out(comm, "comm");
    const khoro::Chosen chosen = khoro::chosen_by(config);
    return join(comm, khoro::next_place_in_world(), chosen);
  });
}

khoroResult_t khoroCommInitWorld(khoroComm_t* comm) {
  return khoroCommInitWorldConfig(comm, nullptr);
}

khoroResult_t khoroCommInitOver(khoroComm_t* comm, int nranks, int rank, khoroAllGatherFn exchange,
                                void* context, const khoroConfig_t* config) {
  return guard([&] {
    khoro::check_out(comm, "comm");
    check_ranks(nranks, rank);
    if (!exchange)
      throw Error(Code::invalid_argument,
                  "exchange is NULL; pass a function that gathers from all ranks");
    const khoro::Chosen chosen = khoro::chosen_by(config);
    const auto form = [=] {
      return khoro::form(over(exchange, context, rank), {nranks, rank, 0, rank}, chosen.settings);
    };
    // The caller's function is called by the caller's thread, unless several ranks of a group must
    // be in it at once.
    if (!chosen.blocking && khoro::group_depth == 0)
      return make({comm, chosen, [form] {
                     const std::shared_ptr<khoro::Arrival> arrival = form();
                     return Make([arrival](auto* i) { return meet(arrival.get(), i); });
                   }});
    const Make form_and_meet = [form](auto* interrupt) { return meet(form().get(), interrupt); };
    return make({comm, chosen, [form_and_meet] { return form_and_meet; }});
  });
}

khoroResult_t khoroCommSplit(khoroComm_t comm, int color, int key, khoroComm_t* newcomm,
                             const khoroConfig_t* config) {
  return guard([&] {
    khoro::check_out(newcomm, "newcomm");
    if (color < 0 && color != KHORO_SPLIT_NOCOLOR)
      throw Error(Code::invalid_argument,
                  fmt::format("color is {}; it must be 0 or more, or KHORO_SPLIT_NOCOLOR", color));
    handles().pin(comm).open();
    const khoro::Chosen chosen = config ? khoro::chosen_by(config) : handles().pin(comm).chosen();
    const auto begin = [=] {
      // Shared by the copies of what is made of it.
      const auto parent = std::make_shared<Parent>(comm, chosen);
      return Make([=](const khoro::Interrupt* interrupt) {
        const std::unique_ptr<khoro::Arrival> arrival = [&] {
          const Returning returning{*parent};
          return khoro::form_within(**parent, color, key, chosen.settings, interrupt);
        }();
        try {
          return meet(arrival.get(), interrupt);
        } catch (const Error&) {
          if (const auto cause = cause_of(comm)) throw *cause;
          throw;
        }
      });
    };
    return make({newcomm, chosen, begin, nullptr, color < 0 ? comm : nullptr});
  });
}

khoroResult_t khoroCommInitAllHost(khoroComm_t* comms, int n) {
  return guard([&] {
    khoro::check_out(comms, "comms");
    check_ranks(n, 0);
    give_out(comms, khoro::init_all_host(n));
  });
}

khoroResult_t khoroCommInitAll(khoroComm_t* comms, int n, const int* devices) {
  return guard([&] {
    khoro::check_out(comms, "comms");
    check_ranks(n, 0);
    std::vector<int> chosen(static_cast<std::size_t>(n));
    for (int rank = 0; rank < n; ++rank) {
      chosen[static_cast<std::size_t>(rank)] = devices ? devices[rank] : rank;
      if (devices && devices[rank] < 0)
        throw Error(Code::invalid_argument,
                    fmt::format("device {} of rank {}; GPUs count from 0", devices[rank], rank));
    }
    give_out(comms, khoro::init_all(chosen));
  });
}

khoroResult_t khoroCommFinalize(khoroComm_t comm) {
  return guard([&] {
    const auto communicator = handles().claim(comm);
    communicator->finalize();
    communicator.close();
  });
}

khoroResult_t khoroCommDestroy(khoroComm_t comm) {
  return guard([&] { const std::unique_ptr<Communicator> communicator = handles().remove(comm); });
}
