// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/meeting.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>

#include "base/log.h"
#include "base/random.h"
#include "base/ranks.h"
#include "base/system.h"

namespace khoro {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t most_half_open = 64;
constexpr Duration handshake_patience = 3s;
constexpr Duration pause_without_descriptors = 20ms;
constexpr int most_audit_lines = 10;
constexpr const char* no_descriptors =
    "the process that serves the meeting has no descriptors left for those of all ranks; raise its "
    "limit (ulimit -n)";

constexpr std::uint64_t listener_tag = 1;
constexpr std::uint64_t timer_tag = 2;
constexpr std::uint64_t first_visitor_tag = 4;

std::uint64_t socket_tag(int descriptor) {
  return first_visitor_tag + 2 * static_cast<std::uint64_t>(descriptor);
}
Descriptor listen_at(const UniqueId& id) {
  try {
    return listen_on(id.socket);
  } catch (const Error& error) {
    if (!id.host_may_be_late) throw;  // nobody else can have drawn its name
    throw Error(error.code(),
                fmt::format("rank 0 cannot open the meeting of the job: {}; where it is in use, "
                            "another process is rank 0 of the same job, or another job of this "
                            "user goes by the same MASTER_PORT or key file",
                            error.what()));
  }
}

std::uint64_t process_tag(int descriptor) { return socket_tag(descriptor) + 1; }

}  // namespace

Meeting::Meeting(const UniqueId& id, Time deadline)
    : id_(id),
      events_(::epoll_create1(EPOLL_CLOEXEC)),
      timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)),
      deadline_(deadline) {
  if (!events_ || !timer_) throw_errno("cannot serve a meeting of ranks");
  draw_random(secret_);
  listener_ = listen_at(id_);
  if (!watch(timer_, timer_tag)) throw_errno("cannot serve a meeting of ranks");
  listen_again();
  arm_timer(machine().now());
}

Meeting::~Meeting() {
  wipe(id_.key);
  wipe(secret_);
}

void Meeting::call_off(const Error& reason) noexcept {
  try {
    Time now = machine().now();
    fail({reason.code(), reason.what()}, now);
    arm_timer(now);
  } catch (const std::exception&) {
    // No memory: whoever comes sees that the meeting ended.
    end();
  }
}

bool Meeting::watch(const Descriptor& descriptor, std::uint64_t tag) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = tag;
  return ::epoll_ctl(events_.number(), EPOLL_CTL_ADD, descriptor.number(), &event) == 0;
}

void Meeting::change(const Visitor& visitor, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = socket_tag(visitor.socket.number());
  ::epoll_ctl(events_.number(), EPOLL_CTL_MOD, visitor.socket.number(), &event);
}

void Meeting::listen_again() {
  if (listening_ || !listener_) return;
  listening_ = watch(listener_, listener_tag);
}

void Meeting::pause_listening() {
  if (!listening_) return;
  ::epoll_ctl(events_.number(), EPOLL_CTL_DEL, listener_.number(), nullptr);
  listening_ = false;
}

void Meeting::advance() noexcept {
  try {
    epoll_event events[64];
    int count;
    do {
      count = ::epoll_wait(events_.number(), events, 64, 0);
      Time now = machine().now();
      for (int i = 0; i < count; ++i) handle(events[i].data.u64, events[i].events, now);
      check_clock(now);
      if (phase_ == Phase::distributing && now >= send_again_at_) distribute(now);
      sweep();
    } while (count == 64);
    if (!over()) arm_timer(machine().now());
  } catch (const std::exception& error) {
    // No memory or no descriptor for the meeting itself. Its visitors see that it ended.
    log(LogLevel::error, "rendezvous: the meeting ends: {}", error.what());
    end();
  }
}

void Meeting::handle(std::uint64_t tag, std::uint32_t events, Time now) {
  if (over()) return;
  if (tag == listener_tag) return accept_visitors(now);
  if (tag == timer_tag) {
    std::uint64_t expirations;
    [[maybe_unused]] auto size = ::read(timer_.number(), &expirations, sizeof expirations);
    return;
  }
  auto found = visitors_.find(static_cast<int>((tag - first_visitor_tag) / 2));
  if (found == visitors_.end() || found->second->stage == Visitor::Stage::gone) return;
  Visitor& visitor = *found->second;
  if (tag == process_tag(found->first)) return left(visitor, now);
  if (events & EPOLLOUT) {
    visitor.blocked = false;
    flush(visitor, now);
    if (phase_ == Phase::distributing) distribute(now);
  }
  if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) receive(visitor, now);
}

void Meeting::accept_visitors(Time now) {
  while (half_open() < most_half_open) {
    Accepted accepted = accept_from(listener_);
    if (accepted.exhausted) {
      // They wait in the listener's queue until descriptors are free again.
      pause_listening();
      listen_again_at_ = now + pause_without_descriptors;
      exhausted_ = true;
    }
    if (!accepted.socket) return;
    exhausted_ = false;
    auto peer = peer_of(accepted.socket);
    auto visitor = std::make_unique<Visitor>(
        std::move(accepted.socket), peer.value_or(Credentials{}), now + handshake_patience);
    if (!peer || peer->user != ::geteuid()) {
      audit(*visitor, "it belongs to another user");
      continue;
    }
    int number = visitor->socket.number();
    if (watch(visitor->socket, socket_tag(number))) visitors_[number] = std::move(visitor);
  }
  pause_listening();
}

void Meeting::receive(Visitor& visitor, Time now) {
  // Bounded, so that one visitor cannot keep the others waiting; the rest is read next time.
  for (int frames = 0; frames < 32 && visitor.stage != Visitor::Stage::gone; ++frames) {
    Frame frame;
    std::vector<Descriptor> descriptors;
    std::size_t expected = visitor.descriptors_expected();
    switch (receive_packet(visitor.socket, std::as_writable_bytes(std::span(&frame, 1)),
                           descriptors, expected)) {
      case PacketStatus::done:
        take(visitor, frame, std::move(descriptors), now);
        break;
      case PacketStatus::again:
        return;
      case PacketStatus::closed:
        return left(visitor, now);
      case PacketStatus::malformed:
        return refuse(visitor, {Code::invalid_argument, "it sent a packet of a wrong size", false},
                      now);
      case PacketStatus::exhausted:
        if (expected == 0 || descriptors.size() == expected)
          return refuse(visitor, {Code::invalid_argument, "it sent too many descriptors", false},
                        now);
        fail({Code::system_error, no_descriptors}, now);
        return tell(visitor, now);
    }
  }
}

void Meeting::take(Visitor& visitor, const Frame& frame, std::vector<Descriptor> descriptors,
                   Time now) {
  if (visitor.stage == Visitor::Stage::leaving) return;
  if (visitor.stage == Visitor::Stage::seated) return take_from_seated(visitor, frame, now);
  auto refusal = take_handshake_frame(visitor, id_, secret_, frame, std::move(descriptors));
  if (refusal) return refuse(visitor, *refusal, now);
  flush(visitor, now);
  if (visitor.stage == Visitor::Stage::seated) seat(visitor, now);
}

void Meeting::take_from_seated(Visitor& visitor, const Frame& frame, Time now) {
  const bool plausible = frame.plausible();
  const bool sensible = plausible && phase_ == Phase::distributing;
  if (sensible && frame.kind == FrameKind::received && visitor.in_flight > 0) {
    in_flight_ -= visitor.in_flight;
    visitor.in_flight = 0;
    return distribute(now);
  }
  if (sensible && frame.kind == FrameKind::prepared && !visitor.prepared) {
    visitor.prepared = true;
    auto prepared = [](const auto& seat) { return seat.second->prepared; };
    if (std::all_of(seated_.begin(), seated_.end(), prepared)) complete(now);
    return;
  }
  if (plausible && frame.kind == FrameKind::declined && frame.length == sizeof(Declined)) {
    visitor.text.clear();
    visitor.declines = true;
    visitor.reason = static_cast<Code>(frame.as<Declined>().code);
    return;
  }
  if (plausible && frame.kind == FrameKind::text && visitor.declines &&
      visitor.text.size() + frame.length <= most_text_bytes) {
    visitor.text += frame.text();
    if (!frame.more) seat(visitor, now);
    return;
  }
  fail({Code::remote_error, fmt::format("rank {} broke the rendezvous protocol", visitor.rank)},
       now);
}

/// What a process shares is shown with each of its ranks, and kept with the lowest.
void Meeting::keep_one_arena(Visitor& visitor) {
  for (auto& [rank, other] : seated_)
    if (other->introduction.process == visitor.introduction.process)
      (rank < visitor.rank ? visitor : *other).introduction.arena = Descriptor();
}

void Meeting::seat(Visitor& visitor, Time now) {
  if (phase_ == Phase::failed) return tell(visitor, now);
  if (visitor.declines) {
    told_.insert(visitor.rank);
    ranks_ = std::max(ranks_, visitor.ranks);
    const std::string reason = printable(visitor.text);
    if (visitor.reason == Code::peer_died)
      fail({Code::peer_died, reason}, now);
    else if (visitor.reason == Code::aborted)
      fail({Code::aborted, fmt::format("rank {}: {}", visitor.rank, reason)}, now);
    else
      fail({Code::remote_error, fmt::format("rank {} failed: {}", visitor.rank, reason)}, now);
    return leave_soon(visitor, now);
  }
  if (seated_.count(visitor.rank)) {
    claimed_twice_.insert(visitor.rank);
    return refuse(visitor,
                  {Code::invalid_argument,
                   fmt::format("rank {} is here already (process {})", visitor.rank,
                               seated_[visitor.rank]->peer.process),
                   true},
                  now);
  }
  auto disagrees = disagreement(visitor);
  keep_one_arena(visitor);
  seated_[visitor.rank] = &visitor;
  if (disagrees) return fail(*disagrees, now);
  deadline_ = ranks_ == 0 ? visitor.deadline : std::min(deadline_, visitor.deadline);
  ranks_ = visitor.ranks;
  if (visitor.introduction.pidfd &&
      !watch(visitor.introduction.pidfd, process_tag(visitor.socket.number())))
    return fail({Code::remote_error,
                 fmt::format("rank {} showed a process descriptor that is none", visitor.rank)},
                now);
  if (static_cast<int>(seated_.size()) < ranks_) return;
  phase_ = Phase::distributing;
  distribute(now);
}

void Meeting::left(Visitor& visitor, Time now) {
  bool counts = visitor.authenticated();
  if (visitor.half_open() && !counts) audit(visitor, "it left before it said who it is");
  visitor.stage = Visitor::Stage::gone;
  if (!counts) return;
  ranks_ = std::max(ranks_, visitor.ranks);
  told_.insert(visitor.rank);
  fail({Code::peer_died, fmt::format("rank {} (process {}) died or gave up while the ranks were "
                                     "meeting",
                                     visitor.rank, visitor.peer.process)},
       now);
}

void Meeting::refuse(Visitor& visitor, const Rejection& refusal, Time now) {
  audit(visitor, refusal.cause);
  if (!refusal.answered) {
    visitor.stage = Visitor::Stage::gone;
    return;
  }
  queue_failure(visitor, refusal.code,
                fmt::format("the meeting refused rank {}: {}", visitor.rank, refusal.cause));
  leave_soon(visitor, now);
}

void Meeting::audit(const Visitor& visitor, const std::string& cause) {
  if (++refusals_ > most_audit_lines) return;
  log(LogLevel::warn, "rendezvous: refused process {} of user {}: {}", visitor.peer.process,
      visitor.peer.user, printable(cause));
}

void Meeting::leave_soon(Visitor& visitor, Time now) {
  visitor.stage = Visitor::Stage::leaving;
  visitor.give_up = now + linger;
  flush(visitor, now);
}

void Meeting::flush(Visitor& visitor, Time now) {
  while (!visitor.outgoing.empty() && !visitor.blocked) {
    auto bytes = std::as_bytes(std::span(&visitor.outgoing.front(), 1));
    switch (send_packet(visitor.socket, bytes)) {
      case PacketStatus::done:
        visitor.outgoing.pop_front();
        break;
      case PacketStatus::again:
        visitor.blocked = true;
        break;
      default:
        return left(visitor, now);
    }
  }
  if (visitor.outgoing.empty() && visitor.stage == Visitor::Stage::leaving)
    visitor.stage = Visitor::Stage::gone;
  else
    change(visitor, visitor.blocked ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

void Meeting::check_clock(Time now) {
  if (now >= listen_again_at_) listen_again_at_ = never;
  if (listen_again_at_ == never && half_open() < most_half_open) listen_again();
  for (auto& [number, visitor] : visitors_) {
    if (visitor->stage == Visitor::Stage::leaving && now >= visitor->give_up)
      visitor->stage = Visitor::Stage::gone;
    if (visitor->half_open() && now >= visitor->give_up)
      refuse(
          *visitor,
          {Code::timeout,
           fmt::format("it did not finish the handshake in {} s", handshake_patience / 1s), false},
          now);
  }
  if (now >= deadline_) give_up(now);
}

/// The deadline has passed: says for want of what.
void Meeting::give_up(Time now) {
  if (phase_ == Phase::gathering && exhausted_) {
    fail({Code::system_error, no_descriptors}, now);
  } else if (phase_ == Phase::gathering && ranks_ == 0) {
    fail({Code::timeout,
          "no rank came to the meeting before the deadline, which began when the id was made; make "
          "a new id, and pass it on sooner or raise KHORO_INIT_DEADLINE"},
         now);
  } else if (phase_ == Phase::gathering) {
    std::string twice =
        claimed_twice_.empty() ? "" : fmt::format("; claimed twice: {}", list_of(claimed_twice_));
    fail({Code::timeout,
          fmt::format("{} of {} did not come to the meeting before the deadline{}; check "
                      "that all ranks were started and call init with the same number of ranks",
                      ranks_in_words(missing()), ranks_, twice)},
         now);
  } else if (phase_ == Phase::distributing) {
    std::set<int> late;
    for (auto& [rank, visitor] : seated_)
      if (!visitor->prepared) late.insert(rank);
    fail({Code::timeout, fmt::format("{} of {} came to the meeting but did not finish init "
                                     "before the deadline",
                                     ranks_in_words(late), ranks_)},
         now);
  }
}

/// Explicitly: a forked child may hold copies of the descriptors, which would keep them in the set.
void Meeting::forget(const Visitor& visitor) {
  ::epoll_ctl(events_.number(), EPOLL_CTL_DEL, visitor.socket.number(), nullptr);
  if (visitor.introduction.pidfd)
    ::epoll_ctl(events_.number(), EPOLL_CTL_DEL, visitor.introduction.pidfd.number(), nullptr);
}

void Meeting::sweep() {
  for (auto next = visitors_.begin(); next != visitors_.end();) {
    Visitor& visitor = *next->second;
    if (visitor.stage != Visitor::Stage::gone) {
      ++next;
      continue;
    }
    forget(visitor);
    in_flight_ -= visitor.in_flight;
    auto seat = seated_.find(visitor.rank);
    if (seat != seated_.end() && seat->second == &visitor) seated_.erase(seat);
    next = visitors_.erase(next);
  }
  bool everybody_told = ranks_ > 0 && static_cast<int>(told_.size()) >= ranks_;
  bool lingered = phase_ == Phase::failed && machine().now() >= deadline_;
  if (phase_ == Phase::closing && visitors_.empty()) end();
  if (phase_ == Phase::failed && ((everybody_told && visitors_.empty()) || lingered)) end();
}

void Meeting::arm_timer(Time now) {
  Time next = std::min({deadline_, listen_again_at_, send_again_at_});
  for (auto& [number, visitor] : visitors_)
    if (visitor->half_open() || visitor->stage == Visitor::Stage::leaving)
      next = std::min(next, visitor->give_up);
  itimerspec setting{};
  if (next != never) {
    // A time that has passed already must still fire: zero would disarm.
    auto left = std::max<Duration>(next - now, 1ns).count();
    setting.it_value = {left / 1'000'000'000, left % 1'000'000'000};
  }
  ::timerfd_settime(timer_.number(), 0, &setting, nullptr);
}

void Meeting::end() {
  phase_ = Phase::over;
  if (refusals_ > most_audit_lines)
    log(LogLevel::warn, "rendezvous: refused {} more connections", refusals_ - most_audit_lines);
  // Nothing is left to be readable: whoever waits for the meeting is not woken again.
  for (auto& [number, visitor] : visitors_) forget(*visitor);
  seated_.clear();
  visitors_.clear();
  ::epoll_ctl(events_.number(), EPOLL_CTL_DEL, timer_.number(), nullptr);
  pause_listening();
  listener_ = Descriptor();
}

std::size_t Meeting::half_open() const {
  auto is_half_open = [](const auto& entry) { return entry.second->half_open(); };
  return static_cast<std::size_t>(std::count_if(visitors_.begin(), visitors_.end(), is_half_open));
}

}  // namespace khoro
