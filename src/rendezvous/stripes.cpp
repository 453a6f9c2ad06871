// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/stripes.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <list>
#include <set>
#include <span>

#include "base/random.h"
#include "base/ranks.h"
#include "base/system.h"
#include "rendezvous/frame.h"

namespace khoro {
namespace {

using namespace std::chrono_literals;

constexpr Duration stranger_patience = 3s;
/// Strangers that are heard at once; the others wait in the listener's queue.
constexpr std::size_t most_strangers = 64;

/// How far a socket has come. Who dialled goes down the left side, who was called the right one.
enum class Step : std::uint8_t {
  connecting,
  awaits_challenge,
  awaits_hello,
  awaits_host_proof,
  awaits_proof,
  leaves,  // what it sends last is on its way
  done,
  refused,
};

/// One stripe in the making: a non-blocking socket that carries whole frames both ways.
class Handshake {
 public:
  Handshake(Descriptor socket, Step first, Time give_up)
      : socket_(std::move(socket)), step_(first), give_up_(give_up) {}

  int rank = -1;  // the other's, once it is known
  int stripe = -1;
  bool dialled() const noexcept { return give_up_ == never; }
  Step step() const noexcept { return step_; }
  void go(Step step) noexcept { step_ = step; }
  Time give_up() const noexcept { return give_up_; }
  bool ended() const noexcept { return step_ == Step::done || step_ == Step::refused; }
  Descriptor take_socket() noexcept { return std::move(socket_); }

  pollfd wants() const noexcept {
    const bool writes = step_ == Step::connecting || sent_ < sizeof(Frame);
    return {socket_.number(), static_cast<short>(writes ? POLLOUT : POLLIN), 0};
  }
  /// Why it could not be connected; 0: it is.
  int fault() const noexcept {
    int error = 0;
    socklen_t length = sizeof error;
    ::getsockopt(socket_.number(), SOL_SOCKET, SO_ERROR, &error, &length);
    return error;
  }

  void send(const Frame& frame) noexcept {
    outgoing_ = frame;
    sent_ = 0;
  }
  /// False: the other end is gone.
  bool flush() noexcept {
    while (sent_ < sizeof(Frame)) {
      const ssize_t bytes = ::send(socket_.number(), bytes_of(outgoing_).data() + sent_,
                                   sizeof(Frame) - sent_, MSG_NOSIGNAL);
      if (bytes <= 0) return bytes < 0 && is_passing(errno);
      sent_ += static_cast<std::size_t>(bytes);
    }
    return true;
  }
  bool sent() const noexcept { return sent_ == sizeof(Frame); }
  /// Takes what has come, and not a byte more than the frame: what follows is not for this layer.
  bool receive() noexcept {
    auto* const room = reinterpret_cast<std::byte*>(&incoming_);
    const ssize_t bytes = ::recv(socket_.number(), room + received_, sizeof(Frame) - received_, 0);
    if (bytes <= 0) return bytes < 0 && is_passing(errno);
    received_ += static_cast<std::size_t>(bytes);
    return true;
  }
  /// The frame that has come; null: not yet.
  const Frame* frame() noexcept {
    if (received_ < sizeof(Frame)) return nullptr;
    received_ = 0;
    return &incoming_;
  }

  // What was said, for the proofs.
  Frame hello{};
  Frame challenge{};
  Frame proof{};

 private:
  static bool is_passing(int error) noexcept {
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
  }

  Descriptor socket_;
  Step step_;
  Time give_up_;
  Frame outgoing_{};
  std::size_t sent_ = sizeof(Frame);
  Frame incoming_{};
  std::size_t received_ = 0;
};

class Party {
 public:
  explicit Party(const StripeParty& party)
      : party_(party), made_(party.addresses.size()), left_(0) {
    for (int rank = 0; rank < ranks(); ++rank) {
      if (rank == party_.rank) continue;
      made_[static_cast<std::size_t>(rank)].resize(static_cast<std::size_t>(party_.stripes));
      left_ += party_.stripes;
      for (int stripe = 0; rank > party_.rank && stripe < party_.stripes; ++stripe)
        begin(rank, stripe);
    }
  }

  Stripes meet() {
    while (left_ > 0) {
      wait();
      const Time now = machine().now();
      for (Handshake& each : handshakes_) {
        if (!each.dialled() && now >= each.give_up()) each.go(Step::refused);
      }
      std::erase_if(handshakes_, [](const Handshake& each) { return each.ended(); });
      if (now >= party_.until.deadline) give_up();
    }
    return std::move(made_);
  }

 private:
  int ranks() const noexcept { return static_cast<int>(party_.addresses.size()); }
  const SocketAddress& address(int rank) const {
    return party_.addresses[static_cast<std::size_t>(rank)];
  }
  Descriptor& place(const Handshake& of) {
    return made_[static_cast<std::size_t>(of.rank)][static_cast<std::size_t>(of.stripe)];
  }

  void begin(int rank, int stripe) {
    Handshake& mine = handshakes_.emplace_back(dial(address(rank)), Step::connecting, never);
    mine.rank = rank;
    mine.stripe = stripe;
  }

  void wait() {
    std::vector<pollfd> polled = {{party_.host, POLLIN, 0}, {-1, POLLIN, 0}, {-1, POLLIN, 0}};
    if (party_.until.interrupt != nullptr) polled[1].fd = party_.until.interrupt->descriptor();
    if (strangers() < most_strangers) polled[2].fd = party_.listener.socket.number();
    std::vector<Handshake*> asked;
    Time until = party_.until.deadline;
    for (Handshake& each : handshakes_) {
      asked.push_back(&each);
      polled.push_back(each.wants());
      until = std::min(until, each.give_up());
    }
    ::poll(polled.data(), polled.size(), milliseconds_until(until));
    if (party_.until.interrupt != nullptr && party_.until.interrupt->raised())
      throw Error(Code::aborted, "it was aborted while the ranks were connecting");
    if (polled[0].revents != 0) party_.hear();
    for (std::size_t i = 0; i < asked.size(); ++i)
      if (polled[i + 3].revents != 0) advance(*asked[i]);
    if (polled[2].revents != 0) accept();
  }

  std::size_t strangers() const noexcept {
    return static_cast<std::size_t>(
        std::count_if(handshakes_.begin(), handshakes_.end(),
                      [](const Handshake& each) { return !each.dialled(); }));
  }

  void accept() {
    while (strangers() < most_strangers) {
      Descriptor socket(::accept4(party_.listener.socket.number(), nullptr, nullptr,
                                  SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
        throw_errno("cannot accept the stripes of other ranks (raise the limit: ulimit -n)");
      if (!socket) return;
      handshakes_.emplace_back(std::move(socket), Step::awaits_hello,
                               machine().now() + stranger_patience);
    }
  }

  void advance(Handshake& of) {
    if (of.step() == Step::connecting) {
      if (const int error = of.fault()) lose(of, error);
      return greet(of);
    }
    if (!of.sent()) {
      if (!of.flush()) return lose(of, ECONNRESET);
      if (of.sent() && of.step() == Step::leaves) finish(of);
      return;
    }
    if (!of.receive()) return lose(of, ECONNRESET);
    if (const Frame* frame = of.frame()) take(of, *frame);
  }

  /// A stranger may leave as it likes; a rank that was called must answer.
  void lose(Handshake& of, int error) {
    if (of.dialled()) {
      errno = error;
      throw_errno(
          fmt::format("the connection to rank {} at {} failed", of.rank, address(of.rank).text()));
    }
    of.go(Step::refused);
  }

  void say(Handshake& of, const Frame& frame, Step next) {
    of.send(frame);
    of.go(next);
    if (!of.flush()) return lose(of, ECONNRESET);
    if (of.sent() && next == Step::leaves) finish(of);
  }

  void greet(Handshake& of) {
    StripeHello hello{party_.communicator,
                      static_cast<std::uint32_t>(party_.rank),
                      static_cast<std::uint32_t>(of.rank),
                      static_cast<std::uint32_t>(of.stripe),
                      static_cast<std::uint32_t>(party_.stripes),
                      {}};
    draw_random(hello.nonce);
    of.hello = Frame::make(FrameKind::hello, hello);
    say(of, of.hello, Step::awaits_challenge);
  }

  void take(Handshake& of, const Frame& frame) {
    const Step step = of.step();
    if (!frame.plausible() || !frame.speaks_our_version()) return refuse(of);
    if (step == Step::awaits_challenge) return take_challenge(of, frame);
    if (step == Step::awaits_host_proof) return take_host_proof(of, frame);
    const bool believed =
        step == Step::awaits_hello ? take_hello(of, frame) : take_proof(of, frame);
    if (!believed) refuse(of);
  }

  void refuse(Handshake& of) {
    if (of.dialled())
      throw Error(Code::remote_error,
                  fmt::format("what answers at {} for rank {} does not hold the key of this job",
                              address(of.rank).text(), of.rank));
    of.go(Step::refused);
  }

  bool take_hello(Handshake& of, const Frame& frame) {
    if (frame.kind != FrameKind::hello || frame.length != sizeof(StripeHello)) return false;
    const auto hello = frame.as<StripeHello>();
    if (hello.communicator != party_.communicator ||
        hello.to != static_cast<std::uint32_t>(party_.rank) || hello.from >= hello.to ||
        hello.stripes != static_cast<std::uint32_t>(party_.stripes) ||
        hello.stripe >= hello.stripes)
      return false;
    of.rank = static_cast<int>(hello.from);
    of.stripe = static_cast<int>(hello.stripe);
    of.hello = frame;
    Challenge challenge;
    draw_random(challenge.nonce);
    of.challenge = Frame::make(FrameKind::challenge, challenge);
    say(of, of.challenge, Step::awaits_proof);
    return true;
  }

  void take_challenge(Handshake& of, const Frame& frame) {
    if (frame.kind != FrameKind::challenge || frame.length != sizeof(Challenge)) return refuse(of);
    of.challenge = frame;
    const Proof proof{joiner_proof(party_.key, of.hello, of.challenge, ProofOf::caller)};
    of.proof = Frame::make(FrameKind::joiner_proof, proof);
    say(of, of.proof, Step::awaits_host_proof);
  }

  bool take_proof(Handshake& of, const Frame& frame) {
    if (frame.kind != FrameKind::joiner_proof || frame.length != sizeof(Proof)) return false;
    const Digest expected = joiner_proof(party_.key, of.hello, of.challenge, ProofOf::caller);
    if (!equal_in_constant_time(frame.as<Proof>().digest, expected) || place(of)) return false;
    const Proof answer{called_proof(party_.key, of.hello, of.challenge, frame)};
    say(of, Frame::make(FrameKind::host_proof, answer), Step::leaves);
    return true;
  }

  void take_host_proof(Handshake& of, const Frame& frame) {
    const Digest expected = called_proof(party_.key, of.hello, of.challenge, of.proof);
    if (frame.kind != FrameKind::host_proof || frame.length != sizeof(Proof) ||
        !equal_in_constant_time(frame.as<Proof>().digest, expected))
      return refuse(of);
    finish(of);
  }

  void finish(Handshake& of) {
    Descriptor& at = place(of);
    if (at) return refuse(of);  // another one was faster
    at = of.take_socket();
    tune(at);
    of.go(Step::done);
    --left_;
  }

  [[noreturn]] void give_up() {
    std::set<int> missing;
    for (int rank = 0; rank < ranks(); ++rank)
      for (const Descriptor& stripe : made_[static_cast<std::size_t>(rank)])
        if (!stripe) missing.insert(rank);
    throw Error(
        Code::timeout,
        fmt::format("rank {} has no connection to {} at the deadline; check that sockets "
                    "reach {} from here, or name another interface in KHORO_SOCKET_IFNAME",
                    party_.rank, ranks_in_words(missing), address(*missing.begin()).text()));
  }

  const StripeParty& party_;
  Stripes made_;
  int left_;
  std::list<Handshake> handshakes_;
};

}  // namespace

Stripes connect_stripes(const StripeParty& party) { return Party(party).meet(); }

std::vector<Stripes> connect_stripes_within(const std::vector<Listener>& listeners, int stripes) {
  const std::size_t ranks = listeners.size();
  std::vector<Stripes> all(ranks);
  for (Stripes& of_rank : all) of_rank.resize(ranks);
  for (std::size_t a = 0; a < ranks; ++a)
    for (std::size_t b = a + 1; b < ranks; ++b)
      for (int stripe = 0; stripe < stripes; ++stripe) {
        auto ends = connect_within(listeners[b]);
        all[a][b].push_back(std::move(ends[0]));
        all[b][a].push_back(std::move(ends[1]));
      }
  return all;
}

}  // namespace khoro
