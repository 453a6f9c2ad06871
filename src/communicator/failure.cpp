// SPDX-License-Identifier: Apache-2.0
// How a communicator fails: what ends a wait, what is told to the peers, and in what words.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "communicator/communicator.h"
#include "communicator/residents.h"

namespace khoro {
namespace {

constexpr Duration first_comparison = std::chrono::milliseconds(50);
constexpr Duration comparisons = std::chrono::milliseconds(500);
constexpr Duration straggler_after = std::chrono::seconds(10);

Time later(Time now, Duration by) noexcept { return by > never - now ? never : now + by; }

}  // namespace

void Communicator::throw_cause() const { throw Error(poison_.code(), poison_.message()); }

Cause Communicator::cause_now(Code code, int culprit) const noexcept {
  const std::uint64_t word = under_way_.load(std::memory_order_relaxed);
  if (word == idle) return {code, culprit, CallKind::allreduce, 0};
  return {code, culprit, static_cast<CallKind>(word & 0xff), word >> 8};
}

bool Communicator::latch(const Cause& cause, std::string message) noexcept {
  if (!poison_.latch(cause, std::move(message))) return false;
  page_->post(cause);
  peers_->ring();
  doorbell_.ring();
  if (logs(LogLevel::error))
    log_line(LogLevel::error, fmt::format("rank {}: {}", rank(), poison_.message()));
  return true;
}

void Communicator::poison(const Cause& cause, std::string message) noexcept {
  if (!latch(cause, std::move(message))) return;
  // At once, and not only when they look: this rank's buffers are theirs to read until they stop.
  Residents::of_process().visit_siblings(
      *this, [&](Communicator& sibling) { sibling.latch(cause, poison_.message()); });
}

void Communicator::abort() noexcept {
  const Cause cause = cause_now(Code::aborted, rank());
  poison(cause, words(cause, -1, *peers_));
}

void Communicator::overdue(std::size_t calls) noexcept {
  const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(deadline());
  poison(cause_now(Code::timeout, -1),
         fmt::format("{} queued calls of rank {} were not done {} ms after a thread had begun to "
                     "wait for them: they wait for other work on their streams; look at what that "
                     "waits for, or set a longer deadline with khoroCommSetDeadline",
                     calls, rank(), limit.count()));
}

void Communicator::peer_ended(int peer) noexcept {
  if (peers_->closed(peer)) {
    doorbell_.ring();  // whoever waits for it looks again
    return;
  }
  const Cause cause = cause_now(Code::peer_died, peer);
  poison(cause, words(cause, -1, *peers_));
}

void Communicator::adopt(const Peers::Notice& notice) noexcept {
  if (notice.cause.code == Code::mismatch) {
    // Every rank names both calls, from the records.
    if (const auto found = compare_calls(*peers_, notice.cause.operation)) {
      poison(*found);
      return;
    }
  }
  poison(notice.cause, words(notice.cause, notice.reporter, *peers_));
}

Code Communicator::async_error() noexcept {
  if (!stopped())
    if (const auto notice = peers_->first_notice()) adopt(*notice);
  return poison_.code();
}

void Communicator::fail(const Operation& operation) noexcept {
  const Signature& signature = operation.call.signature;
  const int peer = operation.execution->position().peer;
  if (const auto notice = peers_->first_notice()) return adopt(*notice);
  switch (operation.execution->status()) {
    case Status::mismatch: {
      const Cause cause = cause_now(Code::mismatch, peer);
      if (!signature.point_to_point())
        if (const auto found = compare_calls(*peers_, operation.number)) return poison(*found);
      return poison(cause,
                    fmt::format("{} (#{}) does not match what {} called; both ends must name the "
                                "same calls, counts and types in the same order",
                                describe(signature), operation.number, peers_->who(peer)));
    }
    case Status::closed: {
      const Cause cause = cause_now(Code::peer_died, peer);
      return poison(cause, words(cause, -1, *peers_));
    }
    default:
      return poison(cause_now(Code::remote_error, peer),
                    fmt::format("{} (#{}): {} wrote what no correct rank writes; its memory is "
                                "damaged or it runs another version",
                                describe(signature), operation.number, peers_->who(peer)));
  }
}

void Communicator::start_waiting(Operation& operation, Time now) const noexcept {
  operation.waits = true;
  operation.deadline = later(now, deadline_.load(std::memory_order_relaxed));
  operation.next_comparison = now + first_comparison;
  operation.straggler_report = now + straggler_after;
}

bool Communicator::examine(Operation& operation, Time now) noexcept {
  if (stopped()) return false;
  if (const auto notice = peers_->first_notice()) {
    adopt(*notice);
    return false;
  }
  if (!operation.execution) return true;
  if (!operation.waits) start_waiting(operation, now);
  if (peer_has_left(operation)) return false;
  if (now >= operation.next_comparison && !compare(operation, now)) return false;
  if (now >= operation.straggler_report) report_straggler(operation, now);
  if (now < operation.deadline) return true;
  const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(
      deadline_.load(std::memory_order_relaxed));
  poison(timed_out(*peers_, record_of(operation), operation.execution->position().peer,
                   limit.count()));
  return false;
}

bool Communicator::peer_has_left(Operation& operation) noexcept {
  const int peer = operation.execution->position().peer;
  if (peer < 0 || peer >= ranks() || !peers_->closed(peer)) {
    operation.left = -1;
    return false;
  }
  // What it sent before it left may have come since we looked; look once more, knowing it is all.
  if (operation.left != peer) {
    operation.left = peer;
    return false;
  }
  poison(cause_now(Code::remote_error, peer),
         fmt::format("{} (#{}) needs {}, which has left the communicator; every rank must make the "
                     "same calls before it destroys its communicator",
                     describe(operation.call.signature), operation.number, peers_->who(peer)));
  return true;
}

bool Communicator::compare(Operation& operation, Time now) noexcept {
  operation.next_comparison = now + comparisons;
  if (operation.call.signature.point_to_point()) return true;
  const auto found = compare_calls(*peers_, operation.number);
  if (found) {
    poison(*found);
    return false;
  }
  report_refusal(operation);
  return true;
}

void Communicator::report_refusal(Operation& operation) const noexcept {
  for (int peer = 0; peer < ranks() && !operation.refusal_reported; ++peer) {
    const auto refused = peers_->page(peer).refused();
    if (!refused || refused->number + 1 != operation.number ||
        peers_->page(peer).calls() >= operation.number)
      continue;
    operation.refusal_reported = true;
    log(LogLevel::warn, "rank {}: {} (#{}) waits for {}, whose {} was refused for its arguments",
        rank(), describe(operation.call.signature), operation.number, peers_->who(peer),
        describe(refused->signature));
  }
}

void Communicator::report_straggler(Operation& operation, Time now) const noexcept {
  operation.straggler_report = later(now, straggler_after * 6);
  const int peer = operation.execution->position().peer;
  const std::string missing = operation.call.signature.point_to_point()
                                  ? std::string()
                                  : missing_ranks(*peers_, operation.number);
  log(LogLevel::warn, "rank {}: {} (#{}) waits for {} since {} s", rank(),
      describe(operation.call.signature), operation.number,
      missing.empty() ? peers_->who(peer) : missing + ", not yet called there,",
      straggler_after.count() / 1'000'000'000);
}

Time Communicator::wake_by(const Operation& operation, Time now) const noexcept {
  if (!operation.waits || operation.left >= 0) return now;
  return std::min({operation.next_comparison, operation.straggler_report, operation.deadline});
}

}  // namespace khoro
