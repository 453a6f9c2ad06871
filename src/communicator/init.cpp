// SPDX-License-Identifier: Apache-2.0
#include "communicator/init.h"

#include <fmt/format.h>

#include <utility>

#include "base/doorbell.h"
#include "base/error.h"
#include "base/log.h"
#include "base/system.h"
#include "communicator/process.h"
#include "communicator/seat.h"
#include "topology/topology.h"
#include "transport/shm/shm.h"

namespace khoro {
namespace {

constexpr std::pair<std::string_view, LogLevel> levels[] = {{"off", LogLevel::off},
                                                            {"error", LogLevel::error},
                                                            {"warn", LogLevel::warn},
                                                            {"info", LogLevel::info},
                                                            {"trace", LogLevel::trace}};

Settings read_settings() {
  Settings settings = Settings::from_environment();
  for (const auto& [name, level] : levels)
    if (settings.log == name) set_log_level(level);
#ifdef KHORO_TEST_SWITCHES
  lose_wakeups(static_cast<std::uint64_t>(settings.lose_wakeup));
  shm::publish_early(static_cast<std::uint64_t>(settings.publish_early));
#endif
  return settings;
}

/// What must be the same on all ranks.
std::string facts(const Settings& settings, int ranks) {
  return fmt::format("layout={:016x}\ntopology={:016x}\n{}", RankPage::magic_word,
                     Topology::one_machine(ranks).hash(), settings.job_lines());
}

Time deadline_of_init(const Settings& settings) {
  return machine().now() + std::chrono::milliseconds(settings.init_deadline_ms);
}

std::unique_ptr<Communicator> join_at(const UniqueId& id, int ranks, int rank,
                                      const Settings& settings) {
  const Time deadline = deadline_of_init(settings);
  std::unique_ptr<Communicator> communicator;
  bool met = false;
  try {
    Seat seat(rank, ranks, settings);
    Guest guest{ranks, seat.introduction(), facts(settings, ranks)};
    guest.introduction.pidfd = Process::self().open_pidfd();
    met = true;
    join(id, std::move(guest), deadline, [&](Membership& membership) {
      communicator = seat.join(std::make_shared<const Membership>(std::move(membership)), settings);
    });
  } catch (const Error& error) {
    // join() has told the others what went wrong in it; what comes before only we know.
    if (!met) decline(id, ranks, rank, error, deadline);
    Process::self().end_hosting(id);
    throw;
  }
  Process::self().end_hosting(id);
  return communicator;
}

/// A place in the launcher's job, whose meeting is served from here if it is that of rank 0.
struct Place {
  UniqueId id;
  int ranks;
  int rank;
};
Place take_place(int thread, const Settings& settings) {
  const Key key = read_job_key(static_cast<int>(settings.key_descriptor));
  const Place place{UniqueId::of_job(key, 0), static_cast<int>(settings.size),
                    static_cast<int>(settings.rank) + thread};
  if (place.rank == 0) Process::self().host(place.id, deadline_of_init(settings));
  return place;
}

}  // namespace

std::array<char, 128> make_unique_id() {
  const Settings settings = read_settings();
  const UniqueId id = UniqueId::draw();
  Process::self().host(id, deadline_of_init(settings));
  return id.encode();
}

std::unique_ptr<Communicator> init_rank(const std::array<char, 128>& id, int ranks, int rank) {
  return join_at(UniqueId::decode(id), ranks, rank, read_settings());
}

void decline_rank(const std::array<char, 128>& bytes, int ranks, int rank, const Error& reason,
                  Time until) noexcept {
  try {
    decline(UniqueId::decode(bytes), ranks, rank, reason, until);
  } catch (const std::exception&) {
    // The others learn it by their deadline.
  }
}

int claim_thread_of_world() {
  const Settings settings = read_settings();
  if (settings.rank < 0 || settings.size < 1 || settings.key_descriptor < 0)
    throw Error(
        Code::invalid_usage,
        "no launcher has told this process its rank; start the program with `khoro run`, or "
        "use khoroCommInitRank");
  const int thread = Process::self().next_thread();
  if (thread >= settings.threads)
    throw Error(
        Code::invalid_usage,
        fmt::format("all {} ranks of this process have joined the launcher's job; start more "
                    "with `khoro run --threads`",
                    settings.threads));
  return thread;
}

std::unique_ptr<Communicator> init_world(int thread) {
  const Settings settings = read_settings();
  const Place place = take_place(thread, settings);
  return join_at(place.id, place.ranks, place.rank, settings);
}

void decline_world(int thread, const Error& reason, Time until) noexcept {
  try {
    const Place place = take_place(thread, read_settings());
    decline(place.id, place.ranks, place.rank, reason, until);
  } catch (const std::exception&) {
    // The others learn it by their deadline.
  }
}

std::vector<std::unique_ptr<Communicator>> init_all_host(int ranks) {
  const Settings settings = read_settings();
  std::vector<Seat> seats;
  std::vector<Introduction> members;
  for (int rank = 0; rank < ranks; ++rank) {
    seats.emplace_back(rank, ranks, settings);
    members.push_back(seats.back().introduction());
  }
  const auto membership = std::make_shared<const Membership>(join_directly(std::move(members)));
  std::vector<std::unique_ptr<Communicator>> made;
  for (const Seat& seat : seats) made.push_back(seat.join(membership, settings));
  return made;
}

}  // namespace khoro
