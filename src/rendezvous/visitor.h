// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/packet_socket.h"
#include "base/time.h"
#include "rendezvous/frame.h"
#include "rendezvous/membership.h"

namespace khoro {

/// A connection to a meeting, and how far it has come. Nothing before the proof is believed, and
/// nothing that it sends takes more room than this.
struct Visitor {
  enum class Stage : std::uint8_t {
    hello,         // nothing known
    proof,         // claims a rank
    introduction,  // holds the key
    text,          // has introduced itself; its facts or its reason follow
    seated,        // is one of the ranks
    leaving,       // gets its last frames
    gone,          // to be swept
  };

  Visitor(Descriptor connection, Credentials who, Time patience)
      : socket(std::move(connection)), peer(who), give_up(patience) {}

  bool half_open() const noexcept { return stage < Stage::seated; }
  bool authenticated() const noexcept {
    return stage >= Stage::introduction && stage <= Stage::seated;
  }
  /// How many descriptors the next frame may bring.
  std::size_t descriptors_expected() const noexcept {
    return stage == Stage::introduction ? most_descriptors_of_rank : 0;
  }

  Descriptor socket;
  Credentials peer;
  Stage stage = Stage::hello;
  Time give_up;  // the end of the handshake, or of leaving
  Frame hello{};
  Frame challenge{};

  int rank = -1;
  int ranks = 0;
  Introduction introduction;
  Time deadline = never;
  bool declines = false;
  Code reason = Code::remote_error;  // why it declines
  std::string text;

  std::deque<Frame> outgoing;
  bool blocked = false;         // a frame could not be sent: the socket is full
  std::size_t next_member = 0;  // the first that it was not sent yet
  std::size_t in_flight = 0;    // descriptors sent and not acknowledged
  bool prepared = false;
};

/// Why a visitor is sent away.
struct Rejection {
  Code code;
  std::string cause;
  /// Junk gets no answer; what a joiner of good will did wrong is told.
  bool answered;
};

/// Takes the next frame of a half-open visitor and moves it on, up to and including its text; its
/// answers are queued, the secret of the meeting with the last of them. Descriptors that came with
/// the frame are taken over.
std::optional<Rejection> take_handshake_frame(Visitor& visitor, const UniqueId& id,
                                              const Nonce& secret, const Frame& frame,
                                              std::vector<Descriptor> descriptors);

/// Queues a failure, in as many frames as its text needs.
void queue_failure(Visitor& visitor, Code code, std::string_view text);

/// With everything that is not printable ASCII replaced: what came over a wire is fit for a log.
std::string printable(std::string_view text);

}  // namespace khoro
