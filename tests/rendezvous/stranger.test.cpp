// SPDX-License-Identifier: Apache-2.0
#include <sys/socket.h>
#include <sys/un.h>

#include <random>

#include "base/random.h"
#include "rendezvous/frame.h"
#include "rendezvous/host.h"
#include "support/captured_log.h"
#include "support/catch.h"
#include "support/descriptors.h"

using namespace khoro;
using test::CapturedLog;
using test::open_descriptors;

namespace {

/// Speaks to a meeting without its manners. Every wait is bounded.
class Stranger {
 public:
  explicit Stranger(const UniqueId& id) : socket_(connect_to(id.socket)) {}

  bool send(std::span<const std::byte> bytes, std::span<const int> descriptors = {}) {
    return send_packet(socket_, bytes, descriptors) == PacketStatus::done;
  }
  bool send(const Frame& frame, std::span<const int> descriptors = {}) {
    return send(std::as_bytes(std::span(&frame, 1)), descriptors);
  }
  /// Nothing when the host closed.
  std::optional<Frame> receive() {
    Frame frame;
    std::vector<Descriptor> descriptors;
    for (;;) {
      pollfd one{socket_.number(), POLLIN, 0};
      if (::poll(&one, 1, 10'000) != 1) throw std::runtime_error("the host is silent");
      auto status =
          receive_packet(socket_, std::as_writable_bytes(std::span(&frame, 1)), descriptors, 0);
      if (status == PacketStatus::done) return frame;
      if (status != PacketStatus::again) return {};
    }
  }
  /// The text of a failure, or "closed".
  std::string refusal() {
    auto frame = receive();
    if (!frame) return "closed";
    return frame->kind == FrameKind::failure ? std::string(frame->text().substr(code_bytes))
                                             : "another frame";
  }
  const Descriptor& socket() const { return socket_; }

 private:
  Descriptor socket_;
};

Frame hello(const UniqueId& id, std::uint32_t rank) {
  Hello hello{id.communicator, rank, 0, {}};
  draw_random(hello.nonce);
  return Frame::make(FrameKind::hello, hello);
}

/// The meeting still works: two ranks join.
void still_works(const UniqueId& id, Host& host) {
  for (auto& outcome : join_all(id, 2)) CHECK(outcome.text == "");
  CHECK(host.ends_within(10));
}

}  // namespace

TEST_CASE("a stranger without the key is refused with one line and no harm", "[rendezvous]") {
  UniqueId id = UniqueId::draw(), wrong = id;
  wrong.key[31] ^= 1;
  CapturedLog log;
  Host host(id);
  Outcome outcome = outcome_of([&] { join(wrong, guest(0, 2), in_seconds(20)); });
  CHECK(outcome.code == Code::invalid_argument);
  CHECK_THAT(outcome.text, Catch::Contains("does not hold the key"));
  CHECK(log.count("does not hold the key, and claims to be rank 0") == 1);
  CHECK(log.lines().size() == 1);
  still_works(id, host);
}

TEST_CASE("a host without the key is found out by the joiner", "[rendezvous]") {
  UniqueId id = UniqueId::draw();
  Descriptor listener = listen_on(id.socket);
  auto joiner = std::async(std::launch::async, [&] {
    return outcome_of([&] { join(id, guest(0, 2), in_seconds(20)); });
  });
  pollfd one{listener.number(), POLLIN, 0};
  REQUIRE(::poll(&one, 1, 10'000) == 1);
  Accepted accepted = accept_from(listener);
  // The impostor answers with its own nonce, and sends the joiner's proof back.
  std::vector<Descriptor> none;
  auto receive = [&] {
    Frame frame;
    pollfd waiting{accepted.socket.number(), POLLIN, 0};
    ::poll(&waiting, 1, 10'000);
    CHECK(receive_packet(accepted.socket, std::as_writable_bytes(std::span(&frame, 1)), none, 0) ==
          PacketStatus::done);
    return frame;
  };
  auto send = [&](const Frame& frame) {
    return send_packet(accepted.socket, std::as_bytes(std::span(&frame, 1)));
  };
  receive();
  CHECK(send(Frame::make(FrameKind::challenge, Challenge{})) == PacketStatus::done);
  Frame proof = receive();
  proof.kind = FrameKind::host_proof;
  proof.length = sizeof(HostProof);
  CHECK(send(proof) == PacketStatus::done);
  Outcome outcome = joiner.get();
  CHECK(outcome.code == Code::invalid_usage);
  CHECK_THAT(outcome.text, Catch::Contains("does not hold its key"));
  // Nothing was handed over.
  CHECK(receive_packet(accepted.socket, std::as_writable_bytes(std::span(&proof, 1)), none, 8) ==
        PacketStatus::closed);
  CHECK(none.empty());
}

TEST_CASE("a recorded handshake proves nothing the second time", "[rendezvous]") {
  UniqueId id = UniqueId::draw();
  CapturedLog log;
  Host host(id);
  // A joiner of good will, whose frames are written down.
  Frame greeting = hello(id, 1);
  Frame proof;
  {
    Stranger joiner(id);
    REQUIRE(joiner.send(greeting));
    Frame challenge = joiner.receive().value();
    proof = Frame::make(FrameKind::joiner_proof, Proof{joiner_proof(id.key, greeting, challenge)});
    Stranger replay(id);
    REQUIRE(replay.send(greeting));
    REQUIRE(replay.receive()->kind == FrameKind::challenge);
    REQUIRE(replay.send(proof));
    CHECK_THAT(replay.refusal(), Catch::Contains("does not hold the key"));
  }
  CHECK(log.count("does not hold the key") == 1);
  still_works(id, host);
}

TEST_CASE("a host's own words, sent back, prove nothing", "[rendezvous]") {
  UniqueId id = UniqueId::draw();
  CapturedLog log;
  Host host(id);
  Stranger first(id), second(id);
  Frame greeting = hello(id, 0);
  REQUIRE(first.send(greeting));
  Frame challenge = first.receive().value();
  // The challenge as a greeting, and the digest that a host would make as a joiner's proof.
  Frame reflected = challenge;
  reflected.kind = FrameKind::hello;
  REQUIRE(second.send(reflected));
  CHECK(second.refusal() == "closed");
  Frame proof = Frame::make(
      FrameKind::joiner_proof,
      Proof{host_proof(id.key, greeting, challenge, Frame::make(FrameKind::joiner_proof), {})});
  REQUIRE(first.send(proof));
  CHECK_THAT(first.refusal(), Catch::Contains("does not hold the key"));
  CHECK(log.count("refused process") == 2);  // one line for each
  CHECK(log.lines().size() == 2);
  still_works(id, host);
}

TEST_CASE("a changed greeting, rank or version range breaks the proof", "[rendezvous]") {
  UniqueId id = UniqueId::draw();
  CapturedLog log;
  Host host(id);
  for (int change = 0; change < 2; ++change) {
    Stranger stranger(id);
    Frame said = hello(id, 0), sent = said;
    if (change == 0) sent.payload[8] = 1;  // the rank
    if (change == 1) sent.high = 9;        // a downgrade in the other direction
    REQUIRE(stranger.send(sent));
    Frame challenge = stranger.receive().value();
    REQUIRE(stranger.send(
        Frame::make(FrameKind::joiner_proof, Proof{joiner_proof(id.key, said, challenge)})));
    CHECK_THAT(stranger.refusal(), Catch::Contains("does not hold the key"));
    CHECK(log.lines().size() == static_cast<std::size_t>(change) + 1);
  }
  still_works(id, host);
}

TEST_CASE("versions that cannot talk say both numbers", "[rendezvous]") {
  UniqueId id = UniqueId::draw();
  CapturedLog log;
  Host host(id);
  Stranger stranger(id);
  Frame greeting = hello(id, 0);
  greeting.low = 7;
  greeting.high = 9;
  REQUIRE(stranger.send(greeting));
  CHECK_THAT(stranger.refusal(),
             Catch::Contains("versions 7 to 9") && Catch::Contains("versions 4 to 4"));
  CHECK(log.lines().size() == 1);
  still_works(id, host);
}

TEST_CASE("an id of an earlier communicator is told apart", "[rendezvous]") {
  UniqueId id = UniqueId::draw(), old = id;
  old.communicator ^= 1;
  Host host(id);
  Outcome outcome = outcome_of([&] { join(old, guest(0, 2), in_seconds(20)); });
  CHECK_THAT(outcome.text, Catch::Contains("another communicator"));
  still_works(id, host);
}

TEST_CASE("junk on the socket is dropped, logged ten times and then counted", "[rendezvous]") {
  int before = open_descriptors();
  {
    UniqueId id = UniqueId::draw();
    CapturedLog log;
    Host host(id);
    std::mt19937 random(7);
    for (int round = 0; round < 200; ++round) {
      Stranger stranger(id);
      std::vector<std::byte> junk(round % 3 == 0 ? 256 : random() % 600 + 1);
      for (std::byte& byte : junk) byte = std::byte(random());
      // Descriptors from a stranger never enter the process.
      int standard_error = 2;
      std::vector<int> gifts(round % 4 == 0 ? 20 : 0, standard_error);
      REQUIRE(stranger.send(junk, gifts));
      CHECK(stranger.refusal() == "closed");
    }
    CHECK(log.count("refused process") == 10);
    still_works(id, host);
    CHECK(log.count("refused 190 more connections") == 1);
  }
  CHECK(open_descriptors() == before);
}

TEST_CASE("a handshake whose frames are cut or have a bit changed comes to nothing",
          "[rendezvous]") {
  UniqueId id = UniqueId::draw();
  CapturedLog log;
  Host host(id);
  std::mt19937 random(11);
  // Magic, kind, length, reserved and what a greeting and a proof hold; not the versions and `more`
  // of a proof, of which only the greeting's count.
  std::vector<std::size_t> places{0, 1, 2, 3, 8, 10, 11, 12, 13, 14, 15};
  for (std::size_t i = 16; i < 48; ++i) places.push_back(i);
  for (int round = 0; round < 400; ++round) {
    bool cut = round & 1;
    int damaged = (round >> 1) & 1;
    Stranger stranger(id);
    auto send = [&](int number, Frame frame) {
      std::size_t size = number == damaged && cut ? random() % 255 + 1 : sizeof frame;
      if (number == damaged && !cut)
        reinterpret_cast<std::uint8_t*>(&frame)[places[random() % places.size()]] ^=
            static_cast<std::uint8_t>(1u << random() % 8);
      stranger.send(std::as_bytes(std::span(&frame, 1)).first(size));
    };
    Frame greeting = hello(id, 0);
    send(0, greeting);
    auto answer = stranger.receive();
    if (!answer || answer->kind == FrameKind::failure) {
      CHECK(damaged == 0);
      continue;
    }
    send(1, Frame::make(FrameKind::joiner_proof, Proof{joiner_proof(id.key, greeting, *answer)}));
    answer = stranger.receive();
    CHECK((!answer || answer->kind == FrameKind::failure));
  }
  still_works(id, host);
}

TEST_CASE("a thousand visitors that connect and leave, some with a reset, do no harm",
          "[rendezvous]") {
  int before = open_descriptors();
  {
    UniqueId id = UniqueId::draw();
    CapturedLog log;
    Host host(id);
    auto scanner = std::async(std::launch::async, [&] {
      for (int i = 0; i < 1000; ++i) {
        Stranger visitor(id);
        // Its end is a reset for the host if it leaves before it has read the challenge.
        if (i % 3 == 1) visitor.send(hello(id, static_cast<std::uint32_t>(i % 8)));
        if (i % 3 == 2) visitor.send(std::as_bytes(std::span("GET / HTTP/1.1")));
      }
    });
    auto outcomes = on_all_ranks(8, [&](int rank) {
      ::poll(nullptr, 0, 3 * rank);
      return outcome_of([&] { join(id, guest(rank, 8), in_seconds(20)); });
    });
    for (auto& outcome : outcomes) CHECK(outcome.text == "");
    scanner.wait();
    CHECK(log.count("refused process") <= 10);
  }
  CHECK(open_descriptors() == before);
}

TEST_CASE("visitors that say nothing are sent away after 3 seconds and hold nobody up for longer",
          "[rendezvous]") {
  UniqueId id = UniqueId::draw();
  CapturedLog log;
  Host host(id);
  std::vector<std::unique_ptr<Stranger>> silent;
  for (int i = 0; i < 100; ++i) silent.push_back(std::make_unique<Stranger>(id));
  Time start = machine().now();
  for (auto& outcome : join_all(id, 2)) CHECK(outcome.text == "");
  CHECK(machine().now() - start < std::chrono::seconds(8));
  CHECK(log.count("did not finish the handshake in 3 s") == 10);
}
