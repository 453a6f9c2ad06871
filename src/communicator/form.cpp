// SPDX-License-Identifier: Apache-2.0
#include "communicator/form.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "communicator/process.h"

namespace khoro {
namespace {

constexpr std::uint32_t exchange_version = 1;

/// What ranks exchange first. Little-endian, as the machines are; multiples of 8 bytes.
struct Offer {
  std::uint32_t version;  // first for every later version too
  std::uint32_t bytes;
  std::int32_t ranks;
  std::int32_t rank;
  std::int32_t color;
  std::int32_t key;
  std::array<char, 128> id;  // of the communicator that this rank would serve
};
static_assert(sizeof(Offer) == 152);

/// What ranks exchange then.
struct Outcome {
  std::int32_t code;  // success: prepared
  char words[236];
};
static_assert(sizeof(Outcome) == 240);

template <class Record>
std::vector<Record> exchanged(const Exchange& exchange, int ranks, const Record& mine) {
  std::vector<Record> all(static_cast<std::size_t>(ranks));
  exchange(&mine, all.data(), sizeof mine);
  return all;
}

/// Every rank sees the same offers, so that all ranks fail alike.
void check(const std::vector<Offer>& offers, int ranks) {
  for (std::size_t i = 0; i < offers.size(); ++i) {
    const Offer& offer = offers[i];
    if (offer.version != exchange_version || offer.bytes != sizeof(Offer))
      throw Error(Code::invalid_argument,
                  fmt::format("what came from rank {} is version {} of an exchange of ranks, this "
                              "rank speaks version {}; use the same Khoro in all processes, and an "
                              "exchange that passes all bytes on unchanged",
                              i, offer.version, exchange_version));
    if (offer.ranks != ranks)
      throw Error(Code::invalid_argument,
                  fmt::format("rank {} was told that there are {} ranks, this one that there are "
                              "{}; name the same number on all ranks",
                              i, offer.ranks, ranks));
    if (offer.rank != static_cast<int>(i))
      throw Error(Code::invalid_argument,
                  fmt::format("the exchange put what rank {} gave in the place of rank {}; what "
                              "each gives belongs in the order of ranks",
                              offer.rank, i));
  }
}

/// The ranks of a colour, in their new order.
std::vector<int> members_of(int color, const std::vector<Offer>& offers) {
  std::vector<int> members;
  for (const Offer& offer : offers)
    if (offer.color == color) members.push_back(offer.rank);
  std::stable_sort(members.begin(), members.end(), [&](int a, int b) {
    return offers[static_cast<std::size_t>(a)].key < offers[static_cast<std::size_t>(b)].key;
  });
  return members;
}

Place place_among(const std::vector<int>& members, const std::vector<Offer>& offers, int rank) {
  const auto place = std::find(members.begin(), members.end(), rank) - members.begin();
  UniqueId id = UniqueId::decode(offers[static_cast<std::size_t>(members.front())].id);
  id.host_may_be_late = true;  // it opens the meeting once it knows that it is the first
  return {id, static_cast<int>(members.size()), static_cast<int>(place), place == 0};
}

}  // namespace

std::unique_ptr<Arrival> form(const Exchange& exchange, const Wish& wish,
                              const std::string& chosen) {
  const auto offers = exchanged(exchange, wish.ranks,
                                Offer{exchange_version, sizeof(Offer), wish.ranks, wish.rank,
                                      wish.color, wish.key, UniqueId::draw().encode()});
  check(offers, wish.ranks);
  std::vector<int> members;
  Place place;
  std::unique_ptr<Arrival> arrival;
  std::optional<Error> failure;
  Outcome mine{};
  if (wish.color >= 0) {
    try {
      members = members_of(wish.color, offers);
      place = place_among(members, offers, wish.rank);
      const Settings settings = settings_for(chosen);
      open_meeting(place, settings);
      arrival = std::make_unique<Arrival>(place, settings);
    } catch (...) {
      failure = handled_error("no memory left to make the communicator");
    }
  }
  if (failure) {
    Process::self().stop_hosting(place.id);  // nobody will come, for all of the colour hear of it
    mine.code = static_cast<std::int32_t>(failure->code());
    std::strncpy(mine.words, failure->what(), sizeof mine.words - 1);
  }
  const auto outcomes = exchanged(exchange, wish.ranks, mine);
  if (failure) throw *failure;
  for (int member : members) {
    Outcome outcome = outcomes[static_cast<std::size_t>(member)];
    outcome.words[sizeof outcome.words - 1] = 0;
    if (outcome.code != 0)
      throw Error(Code::remote_error, fmt::format("rank {} failed: {}", member, outcome.words));
  }
  return arrival;
}

std::unique_ptr<Arrival> form_within(Communicator& parent, int color, int key,
                                     const std::string& chosen, const Interrupt* interrupt) {
  const Exchange exchange = [&parent](const void* mine, void* all, std::size_t bytes) {
    const CallBuffers buffers{static_cast<const std::byte*>(mine), static_cast<std::byte*>(all)};
    parent.run({{CallKind::split, Dtype::i64, {}, 0, bytes / sizeof(std::int64_t)}, buffers});
  };
  // The interrupt is raised once, and then stays readable, as the descriptor of an ended process.
  std::shared_ptr<Control> control;
  Control::Watch watch;
  if (interrupt) {
    control = Process::self().control();
    watch = control->when_ended(interrupt->descriptor(), [&parent] { parent.abort(); });
  }
  // A rank stays on its GPU, whatever its new number.
  const std::string device =
      parent.gpu() ? fmt::format("KHORO_DEVICE={};", parent.gpu()->device()) : std::string();
  return form(exchange, {parent.ranks(), parent.rank(), color, key}, device + chosen);
}

}  // namespace khoro
