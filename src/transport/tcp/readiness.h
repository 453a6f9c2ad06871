// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "base/descriptor.h"

namespace khoro::tcp {

class Connection;

/// All sockets of a rank, for who sleeps and for what nobody asks for. An end that looks in vain
/// looks at its own peer's sockets alone; now and then such a look is for all of them, so that what
/// has come from a peer that nobody waits for neither keeps a sleeper awake nor fills up sockets.
class Readiness {
 public:
  /// Throws `Error`.
  Readiness();

  /// Readable while a socket has something to be read, or room for what waits to be sent.
  int descriptor() const noexcept { return set_.number(); }

  /// Throws `Error`.
  void add(Connection& connection, int socket);
  void remove(int socket) noexcept;
  /// From now on one more stripe, or one less, has something that waits to be sent.
  void blocks(Connection& connection, int socket) noexcept;
  void flows(Connection& connection, int socket) noexcept;

  /// An end has looked in vain: others may have something to send, or to be taken in.
  void looked_in_vain() noexcept;
  void sweep() noexcept;

 private:
  void change(Connection& connection, int socket, unsigned events) noexcept;

  Descriptor set_;
  std::size_t blocked_ = 0;
  unsigned looks_ = 0;
};

}  // namespace khoro::tcp
