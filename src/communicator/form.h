// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "communicator/init.h"

namespace khoro {

/// Passes what every rank gives to all of them: `all` has room for the bytes of each, by rank.
/// Collective over the ranks; throws `Error`.
using Exchange = std::function<void(const void* mine, void* all, std::size_t bytes)>;

/// What one rank of an exchange wants: to be in a communicator with those that name the same
/// colour, in the order of (key, rank). A negative colour wants none.
struct Wish {
  int ranks = 0;
  int rank = 0;
  int color = 0;
  int key = 0;
};

/// Ranks that can pass each other bytes already form new communicators: all ranks of the exchange
/// call it, and each gets its arrival at the communicator of its colour, or null if it wants none.
/// The first rank of each draws its id, with a fresh key, and serves its meeting. Exchanges twice:
/// what each wants, and whether each could prepare, so that the failure of one ends it for all of
/// its colour at once. Blocks as long as the exchange. Throws `Error`: what the exchange throws;
/// invalid_argument where the ranks do not agree on how many there are; remote_error that names the
/// rank which could not prepare.
std::unique_ptr<Arrival> form(const Exchange& exchange, const Wish& wish,
                              const std::string& chosen);

/// The same among the ranks of a communicator, as calls of it: it is thread-bound meanwhile.
/// Raising the interrupt (null: none) aborts it, since a call cannot be taken back.
std::unique_ptr<Arrival> form_within(Communicator& parent, int color, int key,
                                     const std::string& chosen, const Interrupt* interrupt);

}  // namespace khoro
