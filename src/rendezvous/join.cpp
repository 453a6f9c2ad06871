// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>

#include "base/packet_socket.h"
#include "base/random.h"
#include "base/system.h"
#include "rendezvous/frame.h"
#include "rendezvous/membership.h"
#include "rendezvous/stripes.h"
#include "rendezvous/visitor.h"

namespace khoro {
namespace {

using namespace std::chrono_literals;

/// How long after its own deadline a joiner still hears the host, which knows who is missing.
constexpr Duration grace = 500ms;

[[noreturn]] void host_is_gone() {
  throw Error(Code::peer_died,
              "the process that serves the meeting died, or ended it before this rank was let in");
}

/// The joiner's side of a connection. Blocking, up to a deadline.
class Conversation {
 public:
  Conversation(const UniqueId& id, int rank, const Until& until)
      : id_(id),
        rank_(rank),
        deadline_(until.deadline),
        until_(later(until.deadline, grace)),
        interrupt_(until.interrupt) {
    connect();
    auto peer = peer_of(socket_);
    if (!peer || peer->user != ::geteuid())
      throw Error(Code::invalid_usage,
                  fmt::format("the socket @{} of the meeting belongs to user {}, not to this one; "
                              "all ranks of a job run as one user",
                              id_.socket, peer ? peer->user : 0));
    shake_hands();
  }

  void send(const Frame& frame, std::span<const int> descriptors = {}) {
    for (;;) {
      switch (send_packet(socket_, std::as_bytes(std::span(&frame, 1)), descriptors)) {
        case PacketStatus::done:
          return;
        case PacketStatus::again:
          wait(POLLOUT);
          break;
        case PacketStatus::exhausted:
          if (machine().now() >= until_) host_is_silent();
          sleep(10ms);
          break;
        default:
          // It may have said why before it closed.
          receive(0);
          host_is_gone();
      }
    }
  }

  void send_text(std::string_view text) {
    do {
      std::string_view part = text.substr(0, Frame::payload_bytes);
      text.remove_prefix(part.size());
      Frame frame = Frame::make(FrameKind::text);
      std::copy(part.begin(), part.end(), frame.payload.begin());
      frame.length = static_cast<std::uint16_t>(part.size());
      frame.more = !text.empty();
      send(frame);
    } while (!text.empty());
  }

  /// The next frame, and up to `most` descriptors. Throws what a failure frame says.
  Frame receive(std::size_t most) {
    Frame frame = receive_any(most);
    if (frame.kind != FrameKind::failure) return frame;
    std::string text;
    std::int32_t code = frame.as<std::int32_t>();
    for (;;) {
      text += frame.text().substr(std::min<std::size_t>(code_bytes, frame.length));
      if (!frame.more || text.size() > most_text_bytes) break;
      frame = receive_any(0);
    }
    throw Error(code_of(code, Code::remote_error), printable(text));
  }

  Frame expect(FrameKind kind, std::size_t length, std::size_t most = 0) {
    Frame frame = receive(most);
    if (frame.kind != kind || frame.length != length) host_is_strange();
    return frame;
  }

  std::vector<Descriptor>& descriptors() { return descriptors_; }
  /// Readable when the host has said something.
  int descriptor() const noexcept { return socket_.number(); }

  /// For the stripes of this meeting.
  const Key& stripe_key() const noexcept { return stripe_key_; }

  /// As much as it may be: the host has limits of its own.
  std::int64_t milliseconds_left() const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - machine().now());
    return std::max<std::int64_t>(left.count(), 0);
  }

  /// Tells the host, and so everybody, why this rank leaves. Best effort.
  void leave(int ranks, const Error& reason) noexcept {
    try {
      Declined declined{static_cast<std::uint32_t>(rank_), static_cast<std::uint32_t>(ranks),
                        milliseconds_left(), static_cast<std::int32_t>(reason.code()), 0};
      send(Frame::make(FrameKind::declined, declined));
      send_text(std::string_view(reason.what()).substr(0, most_text_bytes));
    } catch (...) {
      // The host has gone: then the others know by its end.
    }
  }

  [[noreturn]] void host_is_strange() const {
    throw Error(Code::remote_error,
                "the process that serves the meeting broke the rendezvous "
                "protocol; use the same version of Khoro in all processes");
  }

 private:
  void connect() {
    for (Duration pause = 1ms;; pause = std::min<Duration>(2 * pause, 20ms)) {
      socket_ = connect_to(id_.socket);
      if (socket_) return;
      if (!id_.host_may_be_late)
        throw Error(Code::invalid_usage,
                    fmt::format("nobody serves the meeting of id {}: it is over, or nobody came to "
                                "it before its deadline, or the process that made the id has "
                                "ended; every communicator needs a new id",
                                id_.fingerprint()));
      if (machine().now() >= deadline_)
        throw Error(Code::timeout,
                    "rank 0 did not open the meeting before the deadline; check that "
                    "it was started and calls init");
      sleep(pause);
    }
  }

  void shake_hands() {
    Hello hello{id_.communicator, static_cast<std::uint32_t>(rank_), 0, {}};
    draw_random(hello.nonce);
    Frame greeting = Frame::make(FrameKind::hello, hello);
    send(greeting);
    Frame challenge = expect(FrameKind::challenge, sizeof(Challenge));
    Frame proof =
        Frame::make(FrameKind::joiner_proof, Proof{joiner_proof(id_.key, greeting, challenge)});
    send(proof);
    const auto answer = expect(FrameKind::host_proof, sizeof(HostProof)).as<HostProof>();
    if (!equal_in_constant_time(answer.digest,
                                host_proof(id_.key, greeting, challenge, proof, answer.secret)))
      throw Error(Code::invalid_usage,
                  fmt::format("the process that serves the meeting of id {} does not hold its key",
                              id_.fingerprint()));
    stripe_key_ = khoro::stripe_key(id_.key, answer.secret);
  }

  Frame receive_any(std::size_t most) {
    for (;;) {
      Frame frame;
      switch (receive_packet(socket_, std::as_writable_bytes(std::span(&frame, 1)), descriptors_,
                             most)) {
        case PacketStatus::done:
          if (!frame.plausible()) host_is_strange();
          return frame;
        case PacketStatus::again:
          wait(POLLIN);
          break;
        case PacketStatus::exhausted:
          throw Error(Code::system_error,
                      "no descriptors are left for those of the other ranks; "
                      "raise the limit of this process (ulimit -n)");
        case PacketStatus::malformed:
          host_is_strange();
        case PacketStatus::closed:
          host_is_gone();
      }
    }
  }

  void wait(short events) {
    if (machine().now() >= until_) host_is_silent();
    sleep({socket_.number(), events, 0}, milliseconds_until(until_));
  }

  void sleep(Duration time) { sleep({-1, 0, 0}, static_cast<int>(time / 1ms)); }

  /// Until the descriptor is ready, the time is over, or the interrupt is raised, which throws.
  void sleep(pollfd descriptor, int milliseconds) {
    pollfd both[] = {descriptor, {interrupt_ ? interrupt_->descriptor() : -1, POLLIN, 0}};
    ::poll(both, 2, milliseconds);
    if (interrupt_ && interrupt_->raised())
      throw Error(Code::aborted, "it was aborted while the ranks were meeting");
  }

  [[noreturn]] void host_is_silent() const {
    throw Error(Code::timeout,
                "the process that serves the meeting did not answer before the deadline; check "
                "whether it is stopped, or has no descriptors left (ulimit -n)");
  }

  UniqueId id_;
  Key stripe_key_{};
  int rank_;
  Time deadline_;
  Time until_;
  const Interrupt* interrupt_;
  Descriptor socket_;
  std::vector<Descriptor> descriptors_;
};

void introduce(Conversation& host, const Guest& guest) {
  const Introduction& mine = guest.introduction;
  std::vector<int> descriptors;
  Introduced introduced{static_cast<std::uint32_t>(mine.rank),
                        static_cast<std::uint32_t>(guest.ranks),
                        mine.process,
                        host.milliseconds_left(),
                        0,
                        0,
                        guest.listener.address};
  auto add = [&](HasDescriptor bit, int descriptor) {
    if (descriptor < 0) return;
    introduced.descriptors |= bit;
    descriptors.push_back(descriptor);
  };
  add(has_memory, mine.memory.number());
  add(has_doorbell, mine.doorbell.number());
  add(has_pidfd, mine.pidfd.number());
  add(has_arena, guest.arena);
  add(has_gpu_memory, mine.gpu_memory.number());
  host.send(Frame::make(FrameKind::introduction, introduced), descriptors);
  host.send_text(guest.facts);
}

/// Takes the members that one frame brought, in the order of ranks.
void take_members(Conversation& host, const Frame& frame, int ranks, Membership& membership) {
  if (frame.kind != FrameKind::members || frame.length == 0 ||
      frame.length % sizeof(MemberRecord) != 0)
    host.host_is_strange();
  auto next = host.descriptors().begin();
  for (std::size_t at = 0; at < frame.length; at += sizeof(MemberRecord)) {
    MemberRecord record;
    std::memcpy(&record, frame.payload.data() + at, sizeof record);
    if (record.rank != membership.members.size() || record.rank >= static_cast<unsigned>(ranks))
      host.host_is_strange();
    Introduction member;
    member.rank = static_cast<int>(record.rank);
    member.process = record.process;
    member.address = record.address;
    auto take = [&](HasDescriptor bit, Descriptor& into) {
      if (!(record.descriptors & bit)) return;
      if (next == host.descriptors().end()) host.host_is_strange();
      into = std::move(*next++);
    };
    take(has_memory, member.memory);
    take(has_doorbell, member.doorbell);
    take(has_pidfd, member.pidfd);
    take(has_arena, member.arena);
    take(has_gpu_memory, member.gpu_memory);
    membership.members.push_back(std::move(member));
  }
  host.descriptors().clear();
}

Stripes meet_on_stripes(const Guest& guest, const Until& until, Conversation& host,
                        const Membership& membership) {
  std::vector<SocketAddress> addresses;
  for (const Introduction& member : membership.members) {
    if (member.address.family == SocketAddress::none)
      throw Error(Code::remote_error,
                  fmt::format("rank {} does not say where it can be reached", member.rank));
    addresses.push_back(member.address);
  }
  const auto hear = [&host] {
    host.receive(0);  // it may only say that the meeting has failed
    host.host_is_strange();
  };
  return connect_stripes({membership.communicator, host.stripe_key(), guest.introduction.rank,
                          guest.stripes, guest.listener, std::move(addresses), until,
                          host.descriptor(), hear});
}

void check(const Guest& guest) {
  if (guest.introduction.rank < 0 || guest.introduction.rank >= guest.ranks)
    throw Error(Code::invalid_argument, fmt::format("rank {} is not one of {} ranks",
                                                    guest.introduction.rank, guest.ranks));
  if (guest.facts.size() > most_text_bytes)
    throw Error(Code::internal_error,
                fmt::format("{} bytes of facts do not fit", guest.facts.size()));
}

}  // namespace

Membership join(const UniqueId& id, Guest guest, const Until& until, const Prepare& prepare) {
  check(guest);
  const int ranks = guest.ranks;
  Conversation host(id, guest.introduction.rank, until);
  try {
    introduce(host, guest);
    guest.introduction.pidfd = Descriptor();  // of no use to oneself
    Membership membership;
    membership.communicator = id.communicator;
    while (membership.members.size() < static_cast<std::size_t>(ranks)) {
      Frame frame = host.receive(most_descriptors_of_rank * most_records);
      take_members(host, frame, ranks, membership);
      host.send(Frame::make(FrameKind::received));
    }
    if (guest.stripes > 0) membership.stripes = meet_on_stripes(guest, until, host, membership);
    // The host sends everything of the others and nothing of one's own.
    auto& own = membership.members[static_cast<std::size_t>(guest.introduction.rank)];
    own = std::move(guest.introduction);
    if (prepare) prepare(membership);
    host.send(Frame::make(FrameKind::prepared));
    host.expect(FrameKind::complete, 0);
    return membership;
  } catch (const Error& reason) {
    host.leave(ranks, reason);
    throw;
  } catch (const std::exception& reason) {
    host.leave(ranks, Error(Code::internal_error, reason.what()));
    throw;
  }
}

void decline(const UniqueId& id, int ranks, int rank, const Error& reason,
             const Until& until) noexcept {
  try {
    Conversation host(id, rank, until);
    host.leave(ranks, reason);
    // Waits until the host has it: it answers everybody with the failure.
    host.receive(0);
  } catch (...) {
    // Told, or nobody is there to be told.
  }
}

Membership join_directly(std::vector<Introduction> members) {
  Membership membership;
  membership.communicator = draw_random();
  membership.members = std::move(members);
  for (Introduction& member : membership.members) member.pidfd = Descriptor();
  return membership;
}

}  // namespace khoro
