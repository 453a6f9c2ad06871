// SPDX-License-Identifier: Apache-2.0
#include "communicator/init.h"

#include <fmt/format.h>

#include <atomic>
#include <utility>

#include "base/doorbell.h"
#include "base/error.h"
#include "base/log.h"
#include "base/system.h"
#include "communicator/process.h"
#include "communicator/seat.h"
#include "rendezvous/launcher.h"
#include "rendezvous/stripes.h"
#include "topology/topology.h"
#include "transport/shm/planted_race.h"

namespace khoro {
namespace {

/// What must be the same on all ranks.
std::string facts(const Settings& settings, int ranks) {
  return fmt::format("layout={:016x}\ntopology={:016x}\n{}", RankPage::magic_word,
                     Topology::one_machine(ranks).hash(), settings.job_lines());
}

Time deadline_of_init(const Settings& settings) {
  return machine().now() + std::chrono::milliseconds(settings.init_deadline_ms);
}

/// The launcher that says which rank this process is; each that says half of it is warned of once.
LauncherReport launcher_of(const Settings& settings) {
  static std::atomic_flag warned = ATOMIC_FLAG_INIT;
  const LauncherChoice choice = choose_launcher(Ancestry::of_this_process(), settings.launcher);
  if (!warned.test_and_set())
    for (const LauncherReport& report : choice.reports)
      if (report.state == LauncherReport::State::incomplete)
        log(LogLevel::warn, "what {} says is ignored: {}", report.row->who, report.fault);
  if (choice.chosen()) return *choice.chosen();
  throw Error(Code::invalid_usage,
              fmt::format("{}; start the program with `khoro run`, torchrun or mpirun, or use "
                          "khoroCommInitRank (`khoro info --launcher` shows what is seen)",
                          choice.why));
}

Key job_key(const Settings& settings, const LauncherReport& launcher) {
  const bool ours = launcher.row->name == "khoro";
  if (ours && settings.key_descriptor >= 0)
    return read_job_key(static_cast<int>(settings.key_descriptor));
  if (!settings.job_key_file.empty()) return read_job_key(settings.job_key_file);
  const std::string job = launcher.job();
  if (!job.empty()) return key_of_named_job(job);
  throw Error(Code::invalid_argument,
              fmt::format("{} and {} say which rank this is, and nothing says of which job; {}, or "
                          "name a file with a key of this job in KHORO_JOB_KEY_FILE",
                          launcher.row->rank, launcher.row->size,
                          launcher.row->job[0].empty() || launcher.row->starts_ranks
                              ? "start the program with `khoro run`"
                              : fmt::format("set {} to a number that this job alone has",
                                            launcher.row->job[0])));
}

void check_machine(const LauncherReport& launcher) {
  if (launcher.local_size < 0 || launcher.local_size >= launcher.size) return;
  throw Error(
      Code::invalid_argument,
      fmt::format("{} has {} ranks and {} of them on this machine ({} and {}); all ranks of "
                  "a job must be on one machine",
                  launcher.row->name, launcher.size, launcher.local_size, launcher.row->size,
                  launcher.row->local_size));
}

}  // namespace

Settings settings_for(const std::string& chosen) {
  Settings settings = Settings::from_environment(chosen);
  if (const auto level = level_named(settings.log)) set_log_level(*level);
#ifdef KHORO_TEST_SWITCHES
  lose_wakeups(static_cast<std::uint64_t>(settings.lose_wakeup));
  shm::publish_early(static_cast<std::uint64_t>(settings.publish_early));
#endif
  return settings;
}

void check_settings(const std::string& chosen) { Settings().choose(chosen); }

std::array<char, 128> make_unique_id() {
  const Settings settings = settings_for();
  const UniqueId id = UniqueId::draw();
  Process::self().host(id, deadline_of_init(settings));
  return id.encode();
}

Place place_at(const std::array<char, 128>& id, int ranks, int rank) {
  return {UniqueId::decode(id), ranks, rank};
}

Place next_place_in_world() {
  const Settings settings = settings_for();
  const LauncherReport launcher = launcher_of(settings);
  check_machine(launcher);
  const Key key = job_key(settings, launcher);
  const std::int64_t threads = launcher.row->name == "khoro" ? settings.threads : 1;
  const int thread = Process::self().next_thread();
  if (thread >= threads)
    throw Error(
        Code::invalid_usage,
        fmt::format("all {} ranks of this process have joined the launcher's job; start more "
                    "with `khoro run --threads`",
                    threads));
  const int rank = launcher.rank + thread;
  return {UniqueId::of_job(key, 0), launcher.size, rank, rank == 0};
}

Arrival::Arrival(const Place& place, const Settings& settings)
    : id_(place.id),
      settings_(settings),
      seat_(place.rank, place.ranks, settings),
      guest_{place.ranks, seat_.introduction(), facts(settings, place.ranks), seat_.stripes(),
             seat_.listener()} {
  guest_.introduction.pidfd = Process::self().open_pidfd();
  guest_.introduction.doorbell = Process::self().open_bell();
  guest_.arena = seat_.arena();
}

Arrival::~Arrival() {
  if (met_)
    Process::self().end_hosting(id_);
  else
    Process::self().stop_hosting(id_);
}

std::unique_ptr<Communicator> Arrival::meet(const Interrupt* interrupt) {
  met_ = true;
  std::unique_ptr<Communicator> communicator;
  const Until until(deadline_of_init(settings_), interrupt);
  try {
    khoro::join(id_, std::move(guest_), until, [&](Membership& membership) {
      Stripes stripes = std::move(membership.stripes);
      PeerArenas arenas = map_arenas(membership);
      communicator = seat_.join(membership, std::move(stripes), std::move(arenas), settings_);
    });
  } catch (const Error& error) {
    // The host may not have heard of this rank yet.
    if (error.code() == Code::aborted) Process::self().call_off(id_, error);
    throw;
  }
  communicator->log_transports();
  return communicator;
}

void open_meeting(const Place& place, const Settings& settings) {
  if (place.hosts) Process::self().host(place.id, deadline_of_init(settings));
}

std::unique_ptr<Communicator> join(const Place& place, const std::string& chosen,
                                   const Interrupt* interrupt) {
  std::unique_ptr<Arrival> arrival;
  bool can_be_told = !place.hosts;  // that this rank does not come
  try {
    const Settings settings = settings_for(chosen);
    open_meeting(place, settings);
    can_be_told = true;
    arrival = std::make_unique<Arrival>(place, settings);
  } catch (...) {
    const Error reason = handled_error("no memory left to join");
    if (can_be_told) {
      khoro::decline(place.id, place.ranks, place.rank, reason,
                     {deadline_of_init(Settings()), interrupt});
      Process::self().end_hosting(place.id);
    }
    throw;
  }
  return arrival->meet(interrupt);
}

void decline(const Place& place, const Error& reason, Time until) noexcept {
  try {
    open_meeting(place, settings_for());
    khoro::decline(place.id, place.ranks, place.rank, reason, until);
  } catch (const std::exception&) {
    // The others learn it by their deadline.
  }
}

namespace {

/// `devices` is one for each rank, or none.
std::vector<std::unique_ptr<Communicator>> init_all(int ranks, Settings settings,
                                                    const std::vector<int>& devices) {
  std::vector<Seat> seats;
  std::vector<Introduction> members;
  std::vector<Listener> listeners;
  for (int rank = 0; rank < ranks; ++rank) {
    if (!devices.empty()) settings.device = devices[static_cast<std::size_t>(rank)];
    seats.emplace_back(rank, ranks, settings);
    members.push_back(seats.back().introduction());
    listeners.push_back(seats.back().listener());
  }
  std::vector<Stripes> stripes(seats.size());
  if (seats.front().stripes() > 0)
    stripes = connect_stripes_within(listeners, seats.front().stripes());
  Membership membership = join_directly(std::move(members));
  std::vector<std::unique_ptr<Communicator>> made;
  for (std::size_t rank = 0; rank < seats.size(); ++rank)
    made.push_back(seats[rank].join(membership, std::move(stripes[rank]), {}, settings));
  for (const auto& communicator : made) communicator->log_transports();
  return made;
}

}  // namespace

std::vector<std::unique_ptr<Communicator>> init_all_host(int ranks) {
  Settings settings = settings_for();
  settings.memory = "host";
  return init_all(ranks, std::move(settings), {});
}

std::vector<std::unique_ptr<Communicator>> init_all(const std::vector<int>& devices) {
  Settings settings = settings_for();
  if (settings.memory == "host") settings.memory = "cuda";
  return init_all(static_cast<int>(devices.size()), std::move(settings), devices);
}

}  // namespace khoro
