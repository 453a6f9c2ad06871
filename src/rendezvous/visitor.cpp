// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/visitor.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/random.h"
#include "base/system.h"

namespace khoro {
namespace {

constexpr std::int64_t most_milliseconds = 7 * 24 * 3'600'000ll;
constexpr std::uint32_t most_ranks = 1 << 20;

Rejection junk(std::string cause) { return {Code::invalid_argument, std::move(cause), false}; }
Rejection wrong(std::string cause) { return {Code::invalid_argument, std::move(cause), true}; }

std::optional<Rejection> take_hello(Visitor& visitor, const UniqueId& id, const Frame& frame) {
  if (frame.kind != FrameKind::hello) return junk("its first frame is no greeting");
  if (!frame.speaks_our_version())
    return wrong(
        fmt::format("it speaks versions {} to {} of the rendezvous protocol, the host "
                    "versions {} to {}; use the same version of Khoro in all processes",
                    frame.low, frame.high, lowest_version, highest_version));
  if (frame.length != sizeof(Hello)) return junk("its greeting is too short");
  auto hello = frame.as<Hello>();
  if (hello.communicator != id.communicator)
    return wrong("it wants another communicator; its unique id is an old one");
  if (hello.rank >= most_ranks) return junk("it claims an impossible rank");
  Challenge challenge;
  draw_random(challenge.nonce);
  visitor.hello = frame;
  visitor.challenge = Frame::make(FrameKind::challenge, challenge);
  visitor.rank = static_cast<int>(hello.rank);
  visitor.outgoing.push_back(visitor.challenge);
  visitor.stage = Visitor::Stage::proof;
  return {};
}

std::optional<Rejection> take_proof(Visitor& visitor, const UniqueId& id, const Nonce& secret,
                                    const Frame& frame) {
  if (frame.kind != FrameKind::joiner_proof || frame.length != sizeof(Proof))
    return junk("it proves nothing");
  Digest expected = joiner_proof(id.key, visitor.hello, visitor.challenge);
  if (!equal_in_constant_time(frame.as<Proof>().digest, expected))
    return wrong(fmt::format("it does not hold the key, and claims to be rank {}", visitor.rank));
  HostProof answer{host_proof(id.key, visitor.hello, visitor.challenge, frame, secret), secret};
  visitor.outgoing.push_back(Frame::make(FrameKind::host_proof, answer));
  visitor.stage = Visitor::Stage::introduction;
  return {};
}

std::optional<Rejection> seat_for(Visitor& visitor, std::uint32_t rank, std::uint32_t ranks,
                                  std::int64_t milliseconds) {
  if (static_cast<int>(rank) != visitor.rank) return wrong("it changed its rank");
  if (ranks > most_ranks || rank >= ranks)
    return wrong(fmt::format("there is no rank {} among {} ranks", rank, ranks));
  visitor.ranks = static_cast<int>(ranks);
  visitor.deadline = machine().now() + std::chrono::milliseconds(std::clamp<std::int64_t>(
                                           milliseconds, 0, most_milliseconds));
  visitor.stage = Visitor::Stage::text;
  return {};
}

std::optional<Rejection> take_introduction(Visitor& visitor, const Frame& frame,
                                           std::vector<Descriptor> descriptors) {
  if (frame.kind == FrameKind::declined && frame.length == sizeof(Declined)) {
    auto declined = frame.as<Declined>();
    visitor.declines = true;
    visitor.reason = static_cast<Code>(declined.code);
    return seat_for(visitor, declined.rank, declined.ranks, declined.milliseconds_left);
  }
  if (frame.kind != FrameKind::introduction || frame.length != sizeof(Introduced))
    return junk("it does not introduce itself");
  auto introduced = frame.as<Introduced>();
  Introduction& introduction = visitor.introduction;
  introduction.rank = visitor.rank;
  introduction.process = introduced.process;
  introduction.address = introduced.address;
  std::size_t next = 0;
  auto take = [&](HasDescriptor bit, Descriptor& into) {
    if ((introduced.descriptors & bit) && next < descriptors.size())
      into = std::move(descriptors[next++]);
    return !(introduced.descriptors & bit) || into;
  };
  if (!take(has_memory, introduction.memory) || !take(has_doorbell, introduction.doorbell) ||
      !take(has_pidfd, introduction.pidfd) || !take(has_arena, introduction.arena) ||
      !take(has_gpu_memory, introduction.gpu_memory) || next != descriptors.size())
    return wrong("it sent other descriptors than it said");
  return seat_for(visitor, introduced.rank, introduced.ranks, introduced.milliseconds_left);
}

}  // namespace

std::optional<Rejection> take_handshake_frame(Visitor& visitor, const UniqueId& id,
                                              const Nonce& secret, const Frame& frame,
                                              std::vector<Descriptor> descriptors) {
  if (!frame.plausible()) return junk("it sent what is no frame of the rendezvous");
  switch (visitor.stage) {
    case Visitor::Stage::hello:
      return take_hello(visitor, id, frame);
    case Visitor::Stage::proof:
      return take_proof(visitor, id, secret, frame);
    case Visitor::Stage::introduction:
      return take_introduction(visitor, frame, std::move(descriptors));
    default:
      if (frame.kind != FrameKind::text) return junk("its text is missing");
      if (visitor.text.size() + frame.length > most_text_bytes)
        return wrong("its text is too long");
      visitor.text += frame.text();
      if (!frame.more) visitor.stage = Visitor::Stage::seated;
      return {};
  }
}

void queue_failure(Visitor& visitor, Code code, std::string_view text) {
  constexpr std::size_t part = Frame::payload_bytes - code_bytes;
  text = text.substr(0, most_text_bytes);
  do {
    Frame frame = Frame::make(FrameKind::failure, static_cast<std::int32_t>(code));
    std::string_view now = text.substr(0, part);
    std::memcpy(frame.payload.data() + code_bytes, now.data(), now.size());
    frame.length = static_cast<std::uint16_t>(code_bytes + now.size());
    text.remove_prefix(now.size());
    frame.more = !text.empty();
    visitor.outgoing.push_back(frame);
  } while (!text.empty());
}

std::string printable(std::string_view text) {
  std::string clean(text);
  for (char& c : clean)
    if (c < ' ' || c > '~') c = '?';
  return clean;
}

}  // namespace khoro
