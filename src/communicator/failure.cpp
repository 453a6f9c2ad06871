// SPDX-License-Identifier: Apache-2.0
// How a communicator fails: what ends a wait, what is told to the peers, and in what words.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "communicator/attention.h"
#include "communicator/communicator.h"
#include "communicator/crossing.h"
#include "communicator/residents.h"

namespace khoro {
namespace {

constexpr Duration first_comparison = std::chrono::milliseconds(50);
constexpr Duration comparisons = std::chrono::milliseconds(500);
constexpr Duration crossing_after = std::chrono::milliseconds(900);
constexpr Duration straggler_after = std::chrono::seconds(10);
// Nobody rings when a rank makes an empty call.
constexpr Duration looks_for_slowest = std::chrono::milliseconds(10);

/// What ranks beside that one are told as well.
std::string failed_in(const Call& call, int rank, std::string_view why) {
  return fmt::format("rank {} failed in {}: {}", rank, describe(call.signature, call.tag), why);
}

Cause cause_in(const Operation& operation, Code code, int culprit) noexcept {
  return {code, culprit, operation.call.signature.kind, operation.number, operation.call.tag};
}

}  // namespace

void Communicator::throw_cause() const {
  if (gpu_) settle_gpus();
  throw Error(poison_.code(), poison_.message());
}

Cause Communicator::cause_now(Code code, int culprit) const noexcept {
  const std::uint64_t word = under_way_.load(std::memory_order_acquire);
  if (word == idle) return {code, culprit, CallKind::allreduce, 0};
  const bool tagged = (word & has_tag) != 0;  // pairs with begin_tagged()
  return {code, culprit, static_cast<CallKind>(word & 0xff & ~has_tag), word >> 8,
          tagged ? tag_under_way_.load(std::memory_order_relaxed) : 0};
}

bool Communicator::latch(const Cause& cause, std::string message) noexcept {
  if (!poison_.latch(cause.code, std::move(message))) return false;
  if (gpu_) gpu_->stop();
  page_->post(cause);
  peers_->ring();
  doorbell_.ring();
  log(LogLevel::error, "rank {}: {}", rank(), poison_.message());
  if (witness_) witness_->failed(cause, poison_.message());
  return true;
}

void Communicator::poison(const Cause& cause, std::string message) noexcept {
  if (stopped()) return;
  // At once, and not only when they look: this rank's buffers are theirs to read until they stop.
  // In one visit, so that who visits later finds all of them told, or none.
  const auto tell = [&](Communicator& each) {
    if (&each == this) return latch(cause, std::move(message));
    each.latch(cause, worded([&] { return poison_.message(); }));
    return true;
  };
  // By a reference: there may be no memory for a copy.
  Residents::of_process().visit_with_siblings(*this, std::cref(tell));
}

void Communicator::poison(const Cause& cause) noexcept {
  poison(cause, worded([&] { return words(cause, -1, *peers_); }));
}

void Communicator::poison(const Error& error) noexcept {
  poison(cause_now(error.code(), rank()), worded([&] { return std::string(error.what()); }));
}

void Communicator::poison_by_handled(const Call& call) {
  try {
    throw;
  } catch (const Error& error) {
    poison(cause_now(error.code(), rank()),
           worded([&] { return failed_in(call, rank(), error.what()); }));
  } catch (const std::bad_alloc&) {
    poison(cause_now(Code::out_of_memory, rank()),
           worded([&] { return failed_in(call, rank(), "no memory left to prepare it"); }));
  }
}

void Communicator::stop(Code code) noexcept { poison(cause_now(code, rank())); }

void Communicator::overdue(std::size_t calls) noexcept {
  const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(deadline());
  poison(cause_now(Code::timeout, -1), worded([&] {
           return fmt::format(
               "{} queued calls of rank {} were not done {} ms after a thread had begun to wait "
               "for them: they wait for other work on their streams; look at what that waits for, "
               "or set a longer deadline, by KHORO_DEADLINE or in the program",
               calls, rank(), limit.count());
         }));
}

void Communicator::peer_ended(int peer) noexcept {
  if (peers_->closed(peer)) {
    doorbell_.ring();  // whoever waits for it looks again
    return;
  }
  // What it had found is on its page, and says why it ended.
  if (stopped() || hear()) return;
  poison(cause_now(Code::peer_died, peer));
}

bool Communicator::hear() noexcept {
  const auto notice = peers_->first_notice();
  if (notice) adopt(*notice);
  return notice.has_value();
}

void Communicator::adopt(const Peers::Notice& notice) noexcept {
  // Every rank names all calls, from the records.
  try {
    if (notice.cause.code == Code::mismatch)
      if (auto found = found_again(notice.cause)) return poison(std::move(*found));
  } catch (const std::bad_alloc&) {
    // It says less.
  }
  poison(notice.cause, worded([&] { return words(notice.cause, notice.reporter, *peers_); }));
}

std::optional<Finding> Communicator::found_again(const Cause& cause) const {
  const bool message = Signature{cause.kind}.point_to_point();
  if (cause.culprit < 0) return std::nullopt;
  auto found = message ? compare_messages(*peers_, cause.culprit, -1, cause.operation, cause.tag)
                       : compare_calls(*peers_, cause.operation);
  if (found) return found;
  if (const auto held_back = find_held_back(*peers_, cause.culprit))
    return Finding{cause, describe(*held_back)};
  if (const Cycle cycle = find_cycle(*peers_, cause.culprit))
    return Finding{cause, describe(cycle)};
  return std::nullopt;
}

void Communicator::look_at_peers() noexcept {
  if (TraceFile::wanted()) flush_trace();
  if (stopped() || hear()) return;
  compare_histories();
}

void Communicator::compare_histories() noexcept {
  if (stopped()) return;
  try {
    if (auto found = khoro::compare_histories(*peers_)) poison(std::move(*found));
  } catch (const std::bad_alloc&) {
    // The next look finds it.
  }
}

Code Communicator::async_error() noexcept {
  if (!stopped()) hear();
  return poison_.code();
}

void Communicator::fail(const Operation& operation) noexcept {
  if (!hear()) fail(operation, operation.execution->status(), waited_for(operation));
}

void Communicator::fail(const Operation& operation, Status status, int peer) noexcept {
  if (status == Status::closed && peer >= 0 && peers_->closed(peer)) return miss(operation, peer);
  if (status == Status::closed) return poison(cause_in(operation, Code::peer_died, peer));
  try {
    if (status == Status::mismatch)
      if (auto found = compare_records(operation)) return poison(std::move(*found));
  } catch (const std::bad_alloc&) {
    // It says less.
  }
  const Signature& signature = operation.call.signature;
  const bool differs = status == Status::mismatch;
  poison(cause_in(operation, differs ? Code::mismatch : Code::remote_error, peer), worded([&] {
           const std::string call = title(signature, operation.number);
           const std::string who = peer >= 0 ? peers_->who(peer) : "another rank";
           if (differs && signature.has_local_blocks() && peer >= 0)
             return fmt::format(
                 "{}, {}: rank {} expects {} elements from {}, which gives another number or made "
                 "another call; name the same count at both ends",
                 call, describe(signature), rank(),
                 block_of(operation.call.blocks->output, peer).count, who);
           if (differs)
             return fmt::format(
                 "{}, {}, does not match what {} called; both ends must name the "
                 "same calls, counts and types in the same order",
                 call, describe(signature), who);
           return words_of_damage(call, who);
         }));
}

void Communicator::start_waiting(Operation& operation, Time now) const noexcept {
  operation.waits = true;
  operation.deadline = later(now, deadline());
  operation.first_look = now;
  operation.next_comparison = now + first_comparison;
  operation.straggler_report = now + straggler_after;
}

bool Communicator::examine(std::span<Operation* const> operations, Time now) noexcept {
  try {
    return look(operations, now);
  } catch (const Error& error) {
    poison(error);
    return false;
  } catch (const std::bad_alloc&) {
    poison(cause_now(Code::out_of_memory, rank()), "no memory");
    return false;
  }
}

bool Communicator::look(std::span<Operation* const> operations, Time now) {
  if (stopped() || hear() || !pump_beside(operations)) return false;
  bool due = false;
  for (Operation* operation : operations) {
    if (!operation->waits) start_waiting(*operation, now);
    if (peer_has_left(*operation)) return false;
    due |= now >= operation->next_comparison;
  }
  if (due && !compare(operations, now)) return false;
  for (Operation* operation : operations) {
    if (now >= operation->straggler_report) report_straggler(*operation, now);
    if (attention.calls_away(operation->first_look, now)) {
      abort();
      return false;
    }
    if (now < operation->deadline) continue;
    time_out(*operation);
    return false;
  }
  return true;
}

void Communicator::time_out(const Operation& operation) {
  const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(deadline());
  const CallRecord record = record_of(operation);
  Finding finding = timed_out(*peers_, record, waited_for(operation), limit.count());
  const std::string crossed = crossing(*this, record, waited_for(operation));
  if (!crossed.empty()) finding.message += "; " + crossed;
  poison(std::move(finding));
}

int Communicator::slowest() const noexcept {
  int found = -1;
  std::uint64_t least = ~std::uint64_t{0};
  for (int peer = 0; peer < ranks(); ++peer) {
    const std::uint64_t calls = peers_->page(peer).calls();
    // Who has left makes no more calls, and its records stay.
    if (peers_->closed(peer) || calls >= least) continue;
    least = calls;
    found = peer;
  }
  return found;
}

bool Communicator::near_slowest(std::uint64_t number) noexcept {
  if (number <= near_until_) return true;
  const int rank = slowest();
  if (rank < 0) return true;
  near_until_ = peers_->page(rank).calls() + RankPage::ring - 1;
  return number <= near_until_;
}

int Communicator::missing_peer(const Operation& operation) const noexcept {
  const Signature& signature = operation.call.signature;
  if (signature.point_to_point()) return signature.peer;
  int found = -1;
  for (int peer = 0; peer < ranks(); ++peer) {
    if (peers_->page(peer).calls() >= operation.number) continue;
    found = peer;
    if (peers_->closed(peer)) break;  // it will not come
  }
  return found;
}

int Communicator::waited_for(const Operation& operation) const noexcept {
  if (operation.execution) return operation.execution->position().peer;
  if (operation.on_gpu) return missing_peer(operation);
  return operation.call.tag != 0 ? operation.call.signature.peer : slowest();
}

namespace {

/// The rank of that page, which begins nothing more, has made the call of a message's other end, or
/// its records do not say.
bool has_called(const RankPage& page, const Operation& message, int rank) {
  const Signature& signature = message.call.signature;
  const std::uint64_t last = page.messages();
  for (std::uint64_t place = last; place > 0 && last - place < RankPage::ring; --place) {
    const auto record = page.message(place);
    if (record && record->signature.kind == other_end(signature.kind) &&
        record->signature.peer == rank && record->tag == message.call.tag)
      return record->number >= message.number;
  }
  return last > RankPage::ring;
}

}  // namespace

bool Communicator::peer_has_left(Operation& operation) {
  const int peer = waited_for(operation);
  // A kernel may take its time with what a peer did before it left.
  const auto has_done_its_part = [&] {
    return operation.on_gpu && operation.call.signature.point_to_point() &&
           has_called(peers_->page(peer), operation, rank());
  };
  if (peer < 0 || peer >= ranks() || !peers_->closed(peer) || has_done_its_part()) {
    operation.left = -1;
    return false;
  }
  // What it sent before it left may have come since we looked; look once more, knowing it is all.
  if (operation.left != peer) {
    operation.left = peer;
    return false;
  }
  miss(operation, peer);
  return true;
}

void Communicator::miss(const Operation& operation, int peer) noexcept {
  const Signature& signature = operation.call.signature;
  poison(cause_in(operation, Code::remote_error, peer), worded([&] {
           return fmt::format(
               "{} needs {}, which has left the communicator; {} before it destroys its "
               "communicator: here {}",
               title(signature, operation.number, operation.call.tag), peers_->who(peer),
               signature.point_to_point() ? "each end of a message must be called"
                                          : "every rank must make the same calls",
               describe(signature, operation.call.tag));
         }));
}

bool Communicator::compare(std::span<Operation* const> operations, Time now) {
  int collective_waits_for = -1;
  for (Operation* operation : operations) {
    operation->next_comparison = later(now, comparisons);
    if (!operation->call.signature.point_to_point()) collective_waits_for = waited_for(*operation);
  }
  open_inboxes(operations);
  if (std::exchange(tags_moved_, false)) page_->moved();
  page_->stuck(collective_waits_for);
  for (const Operation* operation : operations) {
    if (is_held_back(*operation, operations)) return false;
    if (auto found = compare_records(*operation)) {
      poison(std::move(*found));
      return false;
    }
  }
  if (!look_for_cycle()) return false;
  for (Operation* operation : operations) {
    report_refusal(*operation);
    report_crossing(*operation, now);
  }
  return true;
}

std::optional<Finding> Communicator::compare_records(const Operation& operation) const {
  const Signature& signature = operation.call.signature;
  if (!signature.point_to_point()) return compare_calls(*peers_, operation.number);
  if (operation.call.tag != 0) return std::nullopt;  // what is announced decides
  const bool sends = signature.kind == CallKind::send;
  return compare_messages(*peers_, sends ? rank() : signature.peer, sends ? signature.peer : rank(),
                          operation.number);
}

bool Communicator::look_for_cycle() {
  Cycle cycle = find_cycle(*peers_, rank());
  if (!cycle.confirms(suspected_)) {
    suspected_ = std::move(cycle);
    return true;
  }
  const CallRecord& call = cycle.waits.front().call;
  poison({Code::mismatch, rank(), call.signature.kind, call.number, call.tag}, describe(cycle));
  return false;
}

void Communicator::report_refusal(Operation& operation) const {
  if (operation.reported & Operation::refusal) return;
  const CallRecord record = record_of(operation);
  const bool message = record.signature.point_to_point();
  for (int peer = 0; peer < ranks(); ++peer) {
    if (message && peer != record.signature.peer) continue;
    const auto refused = refused_instead(peers_->page(peer), rank(), record);
    if (!refused) continue;
    operation.reported |= Operation::refusal;
    log(LogLevel::warn,
        "rank {}: {} waits for {}, where {} was refused for its arguments; look at what it "
        "returned there",
        rank(), title(record.signature, record.number, record.tag), peers_->who(peer),
        describe(refused->signature, refused->tag));
    return;
  }
}

void Communicator::report_crossing(Operation& operation, Time now) const {
  // Another thread may be about to make the call.
  if (now < operation.first_look + crossing_after || operation.reported & Operation::crossing)
    return;
  const std::string text = crossing(*this, record_of(operation), waited_for(operation));
  if (text.empty()) return;
  operation.reported |= Operation::crossing;
  log(LogLevel::warn, "{}", text);
}

void Communicator::report_straggler(Operation& operation, Time now) const {
  operation.straggler_report = later(now, straggler_after * 6);
  const Signature& signature = operation.call.signature;
  const auto waited = std::chrono::duration_cast<std::chrono::seconds>(now - operation.first_look);
  std::vector<int> missing;
  if (!signature.point_to_point()) missing = missing_ranks(*peers_, operation.number);
  log(LogLevel::warn, "rank {}: {} waits for {} since {} s; the call is {}; look at what {}",
      rank(), title(signature, operation.number, operation.call.tag),
      missing.empty() ? peers_->who(waited_for(operation))
                      : list_ranks(missing) + ", not yet called there,",
      waited.count(), describe(signature, operation.call.tag),
      missing.size() > 1 ? "these ranks do instead" : "that rank does instead");
}

Time Communicator::wake_by(const Operation& operation, Time now) const noexcept {
  if (!operation.waits || operation.left >= 0 || pumped_) return now;
  if (!operation.execution && operation.call.tag == 0)
    return std::min(now + looks_for_slowest, operation.deadline);
  return std::min({operation.next_comparison, operation.straggler_report, operation.deadline,
                   attention.next(operation.first_look)});
}

}  // namespace khoro
