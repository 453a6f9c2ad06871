// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "base/descriptor.h"
#include "base/interfaces.h"
#include "rendezvous/listener.h"
#include "rendezvous/membership.h"

namespace khoro {

/// What a rank needs to meet every other one on sockets of their own.
struct StripeParty {
  std::uint64_t communicator = 0;
  const Key& key;  // stripe_key() of the meeting
  int rank = 0;
  int stripes = 0;  // to each other rank
  const Listener& listener;
  std::vector<SocketAddress> addresses;  // of all ranks' listeners, by rank
  Until until;
  /// Readable when the meeting has news, which `hear` then takes; it throws if they are bad.
  int host = -1;
  std::function<void()> hear;
};

/// The lower rank of a pair dials, and both prove that they hold the key before either believes
/// anything. Strangers who connect get 3 s, little memory and no answer. Blocks until all
/// stripes are there. Throws `Error`: timeout naming the ranks that are missing, system_error
/// naming the address that cannot be reached, what `hear` throws, or aborted.
Stripes connect_stripes(const StripeParty& party);

/// The stripes of ranks that all live in this process, by rank; the listeners are theirs. Throws
/// `Error`.
std::vector<Stripes> connect_stripes_within(const std::vector<Listener>& listeners, int stripes);

}  // namespace khoro
