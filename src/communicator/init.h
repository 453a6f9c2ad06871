// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/settings.h"
#include "communicator/communicator.h"
#include "communicator/seat.h"
#include "rendezvous/membership.h"
#include "rendezvous/unique_id.h"

namespace khoro {

/// How communicators are made: each way of calling yields a `Place`, and join() does the rest. All
/// throw `Error`; settings come from the environment and from what was chosen, a text as for
/// Settings::choose().

/// A rank's place in a communicator that is not there yet.
struct Place {
  UniqueId id;
  int ranks = 0;
  int rank = 0;
  /// The meeting is served by this rank.
  bool hosts = false;
};

/// A rank that is ready to meet the others of its place: it has memory and descriptors to show. A
/// meeting that it serves ends with it.
class Arrival {
 public:
  Arrival(const Place& place, const Settings& settings);
  ~Arrival();
  Arrival(const Arrival&) = delete;
  Arrival& operator=(const Arrival&) = delete;

  /// Once; blocks until all ranks have come, the init deadline has passed, which counts from here,
  /// or the interrupt (null: none) is raised, which aborts it on all ranks.
  std::unique_ptr<Communicator> meet(const Interrupt* interrupt);

 private:
  UniqueId id_;
  Settings settings_;
  Seat seat_;
  Guest guest_;
  bool met_ = false;
};

/// Throws invalid_argument, naming setting, value and legal set.
void check_settings(const std::string& chosen);

/// A new id, and this process listening for the ranks that will present it.
std::array<char, 128> make_unique_id();

/// The place of rank `rank` among the `ranks` that hold the id.
Place place_at(const std::array<char, 128>& id, int ranks, int rank);
/// The place of the next thread of this process in the job that the launcher describes, so that the
/// order of calls decides. Throws invalid_usage without a launcher, or when all threads of this
/// process have joined, and invalid_argument for one that cannot be followed. Thread-safe.
Place next_place_in_world();

/// The settings of one communicator; those that concern the process are put in force.
Settings settings_for(const std::string& chosen = {});
/// Serves the meeting of a place that hosts it.
void open_meeting(const Place& place, const Settings& settings);

/// Takes the place: opens the meeting, arrives and meets; the others are told at once if this rank
/// cannot arrive. Blocks as Arrival::meet(). Thread-safe.
std::unique_ptr<Communicator> join(const Place& place, const std::string& chosen,
                                   const Interrupt* interrupt);

/// Lets the others know, in place of join(), that this rank does not come: they fail with that
/// reason. Blocks for a moment, and until `until` where the meeting is not open yet. Thread-safe.
void decline(const Place& place, const Error& reason, Time until) noexcept;

/// All ranks of a new communicator, by rank, connected without a meeting: on memory of the host, or
/// each on a GPU.
std::vector<std::unique_ptr<Communicator>> init_all_host(int ranks);
std::vector<std::unique_ptr<Communicator>> init_all(const std::vector<int>& devices);

}  // namespace khoro
