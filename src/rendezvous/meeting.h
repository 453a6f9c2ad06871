// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/descriptor.h"
#include "base/time.h"
#include "rendezvous/unique_id.h"
#include "rendezvous/visitor.h"

namespace khoro {

/// The host's side of a rendezvous: hears everyone who comes to the socket of an id, seats those
/// who hold the key, and when all ranks are there gives everybody everybody's descriptors. It ends
/// by itself: when all ranks are prepared, or when one of them died, declined, disagrees or did not
/// come by the earliest deadline among those who came, or when nobody came by its own.
///
/// It never blocks and has no thread: whoever owns it waits until `descriptor()` is readable and
/// calls `advance()`. One thread at a time.
class Meeting {
 public:
  /// Listens from now on, for the first rank until `deadline`. Throws `Error` if the place is taken
  /// or descriptors have run out.
  explicit Meeting(const UniqueId& id, Time deadline = never);
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  /// Readable when advance() has something to do; never again once it is over.
  int descriptor() const noexcept { return events_.number(); }
  void advance() noexcept;
  /// Ends it with a reason, told to all who are there or come within 2 s.
  void call_off(const Error& reason) noexcept;
  /// Nobody can join any more and everybody was told: it may be destroyed.
  bool over() const noexcept { return phase_ == Phase::over; }
  /// How many ranks are there now.
  std::size_t present() const noexcept { return seated_.size(); }

 private:
  /// How long those who come after a failure are still told of it.
  static constexpr Duration linger = std::chrono::seconds(2);

  enum class Phase : std::uint8_t { gathering, distributing, closing, failed, over };
  struct Failure {
    Code code;
    std::string text;
  };

  void handle(std::uint64_t tag, std::uint32_t events, Time now);
  void accept_visitors(Time now);
  void listen_again();
  void pause_listening();
  void receive(Visitor& visitor, Time now);
  void take(Visitor& visitor, const Frame& frame, std::vector<Descriptor> descriptors, Time now);
  void take_from_seated(Visitor& visitor, const Frame& frame, Time now);
  void keep_one_arena(Visitor& visitor);
  void seat(Visitor& visitor, Time now);
  std::optional<Failure> disagreement(const Visitor& visitor) const;
  void left(Visitor& visitor, Time now);
  void refuse(Visitor& visitor, const Rejection& refusal, Time now);
  void audit(const Visitor& visitor, const std::string& cause);
  void distribute(Time now);
  bool send_members(Visitor& visitor, Time now);
  void complete(Time now);
  void fail(Failure failure, Time now);
  void tell(Visitor& visitor, Time now);
  void leave_soon(Visitor& visitor, Time now);
  void flush(Visitor& visitor, Time now);
  [[nodiscard]] bool watch(const Descriptor& descriptor, std::uint64_t tag);
  void change(const Visitor& visitor, std::uint32_t events);
  void check_clock(Time now);
  void give_up(Time now);
  void forget(const Visitor& visitor);
  void sweep();
  void arm_timer(Time now);
  void end();
  std::size_t half_open() const;
  std::set<int> missing() const;

  UniqueId id_;
  Nonce secret_;  // for those who hold the key
  Phase phase_ = Phase::gathering;
  Descriptor events_;
  Descriptor listener_;
  Descriptor timer_;
  bool listening_ = false;
  bool exhausted_ = false;  // the last visitor could not be let in
  Time listen_again_at_ = never;
  Time send_again_at_ = never;
  Time deadline_;  // of the first to come; the earliest of those who came; of lingering
  int ranks_ = 0;  // 0 until the first rank is seated
  std::map<int, std::unique_ptr<Visitor>> visitors_;  // by descriptor
  std::map<int, Visitor*> seated_;                    // by rank
  std::set<int> told_;                                // ranks that know of the failure
  std::set<int> claimed_twice_;
  Failure failure_{};
  std::size_t in_flight_ = 0;  // descriptors under way to all visitors
  int refusals_ = 0;
};

}  // namespace khoro
