// SPDX-License-Identifier: Apache-2.0
#pragma once

// What is done with the ends of channels, by the leader of a team, or where a team is given by all.

#include <cstring>

#include "base/status.h"
#include "executor/gpu/channel.h"
#include "transport/channel.h"

namespace khoro::gpu {

enum class Arrival : std::uint8_t { waits, there, mismatch, corrupt };

KHORO_HD inline Status status_of(Arrival arrival) noexcept {
  if (arrival == Arrival::mismatch) return Status::mismatch;
  return arrival == Arrival::corrupt ? Status::corrupt : Status::ok;
}

/// Whether the next message is there; what it says of itself is then in the end. The words of a
/// flagged one may be under way still.
KHORO_HD inline Arrival look_at(End& from, std::uint32_t digest) noexcept {
  const std::uint64_t next = from.number + 1;
  Head& head = from.head(next);
  const std::uint64_t first = observe_alone(head.first), second = observe_alone(head.second);
  if (!has_number(first, next)) return Arrival::waits;
  if (static_cast<std::uint32_t>(first) != digest) return Arrival::mismatch;
  if (!has_number(second, next)) return Arrival::waits;  // they come in any order
  const Meta meta = Meta::unpack(static_cast<std::uint32_t>(second));
  from.flagged = meta.place == Meta::Place::words;
  if (!from.flagged) (void)khoro::observe(head.first);  // pairs with show()
  from.elsewhere = meta.place == Meta::Place::elsewhere;
  if (meta.bytes > (from.flagged ? from.layout.flagged_bytes : from.layout.slot_bytes) ||
      meta.place > Meta::Place::elsewhere || (from.elsewhere && from.peer_device == 0))
    return Arrival::corrupt;
  from.bytes = meta.bytes;
  from.form = meta.form;
  from.staged = false;
  from.room = from.body(next);
  if (from.elsewhere) std::memcpy(&from.room, from.body(next), sizeof from.room);
  return Arrival::there;
}

KHORO_HD inline bool has_credit(End& to) noexcept {
  if (to.number - to.credit < to.layout.slots) return true;
  to.credit = khoro::observe(*to.released);
  return to.number - to.credit < to.layout.slots;
}

KHORO_HD inline std::uint32_t words_of(std::uint32_t bytes) noexcept { return (bytes + 3) / 4; }

/// Publishes the acquired message. All of its payload was written before, in the sight of who
/// calls. One in flagged words needs no order, so that the sender waits for none of its writes.
KHORO_HD inline void show(End& to, const MessageHead& message) noexcept {
  const std::uint64_t number = ++to.number;
  if (to.renews_flags(number)) {
    FlaggedWord* const words = to.flagged_words(number);
    for (std::uint32_t i = to.flagged ? words_of(to.bytes) : 0; i < to.layout.words_of_slot(); ++i)
      publish_alone(words[i], numbered(number, 0));
  }
  Meta meta{static_cast<std::uint32_t>(message.bytes), message.form};
  if (to.flagged) meta.place = Meta::Place::words;
  if (to.elsewhere) {
    meta.place = Meta::Place::elsewhere;
    std::memcpy(to.body(number), &to.room, sizeof to.room);
  }
  Head& head = to.head(number);
  publish_alone(head.second, numbered(number, meta.pack()));
  const std::uint64_t first = numbered(number, message.digest);
  if (to.flagged)
    publish_alone(head.first, first);  // as its words, which tell by themselves that they are there
  else
    khoro::publish(head.first, first);
}

/// Takes the payload of the flagged message that is observed to its room. `gives_up` is asked now
/// and then while words are missing; false if it said yes, and this member's share is not whole.
template <class Team, class GivesUp>
KHORO_HD bool take_in(const Team& team, const End& from, GivesUp gives_up) noexcept {
  constexpr unsigned looks_between = 256;
  const std::uint64_t number = from.number + 1;
  FlaggedWord* const words = from.flagged_words(number);
  const std::uint32_t count = words_of(from.bytes);
  unsigned looks = 0;
  for (std::uint32_t i = team.rank(); i < count; i += team.size()) {
    FlaggedWord word = observe_alone(words[i]);
    while (!has_number(word, number)) {
      if (++looks % looks_between == 0 && gives_up()) return false;
      team.pause();
      word = observe_alone(words[i]);
    }
    const auto data = static_cast<std::uint32_t>(word);
    std::memcpy(from.room + std::size_t{4} * i, &data, sizeof data);
  }
  return true;
}

/// Sends the payload of the acquired message, which is in its room, in flagged words.
template <class Team>
KHORO_HD void send_out(const Team& team, const End& to) noexcept {
  const std::uint64_t number = to.number + 1;
  FlaggedWord* const words = to.flagged_words(number);
  const std::uint32_t count = words_of(to.bytes);
  for (std::uint32_t i = team.rank(); i < count; i += team.size()) {
    std::uint32_t data = 0;
    std::memcpy(&data, to.room + std::size_t{4} * i, sizeof data);
    publish_alone(words[i], numbered(number, data));
  }
}

/// The oldest window that the receiver has offered and this end has not filled, or null.
KHORO_HD inline const Offer* oldest_offer(const End& to) noexcept {
  Offer& offer = to.offers[to.windows % to.layout.slots];
  return khoro::observe(offer.number) == to.windows + 1 ? &offer : nullptr;
}

/// False while as many are open as there may be.
KHORO_HD inline bool make_offer(End& from, std::uint64_t bytes, std::byte* data) noexcept {
  if (from.offered - from.windows == from.layout.slots) return false;
  Offer& offer = from.offers[from.offered % from.layout.slots];
  offer.bytes = bytes;
  offer.data = data;
  khoro::publish(offer.number, ++from.offered);
  return true;
}

}  // namespace khoro::gpu
