// SPDX-License-Identifier: Apache-2.0
#include "communicator/rank_page.h"

#include <algorithm>
#include <utility>

namespace khoro {
namespace {

std::optional<Signature> signature_of(std::uint64_t word, std::uint64_t count) noexcept {
  const Signature signature = Signature::of(word, count);
  if (static_cast<int>(signature.kind) >= call_kinds) return std::nullopt;
  return signature;
}

}  // namespace

std::optional<CallRecord> RankPage::read(const Slot& slot, std::uint64_t key) noexcept {
  // The words before the number once more (pairs with write()).
  constexpr auto acquire = std::memory_order_acquire;
  if (key == 0 || slot.number.load(acquire) != key) return std::nullopt;
  const auto signature = signature_of(slot.word.load(acquire), slot.count.load(acquire));
  CallRecord call;
  call.number = key;
  call.plan_hash = slot.plan.load(acquire);
  call.thread = slot.thread.load(acquire);
  const std::uint64_t word = slot.state.load(acquire);
  const std::uint64_t state = word & 0xffffffff;
  if (slot.number.load(std::memory_order_relaxed) != key || !signature || state < 1 || state > 3)
    return std::nullopt;
  call.signature = *signature;
  call.state = static_cast<CallState>(state);
  call.tag = static_cast<std::uint32_t>(word >> 32);
  return call;
}

void RankPage::refuse(const Signature& signature, std::uint32_t tag) noexcept {
  CallRecord call;
  call.signature = signature;
  call.tag = tag;
  call.state = CallState::refused;
  const auto& begun = signature.point_to_point() ? messages_ : last_;
  // Number 0 means nothing; the first call refused before any other has 1.
  write(refused_, call, begun.load(std::memory_order_relaxed) + 1, 0);
}

std::uint64_t RankPage::begin_message(const CallRecord& call) noexcept {
  const std::uint64_t place = messages_.load(std::memory_order_relaxed) + 1;
  write(message_slots_[place % ring], call, place, call.number);
  messages_.store(place, std::memory_order_release);  // pairs with messages()
  return place;
}

void RankPage::finish_message(std::uint64_t place, std::uint32_t tag) noexcept {
  Slot& slot = message_slots_[place % ring];
  if (slot.number.load(std::memory_order_relaxed) != place) return;
  slot.state.store(state_word(CallState::finished, tag), std::memory_order_release);
}

std::optional<CallRecord> RankPage::message(std::uint64_t place) const noexcept {
  auto call = read(message_slots_[place % ring], place);
  if (call) call->number = std::exchange(call->plan_hash, 0);
  return call;
}

std::optional<CallRecord> RankPage::oldest_queued(std::uint64_t number) const noexcept {
  std::optional<CallRecord> oldest = record(number);
  for (auto call = oldest; call; call = record(--number)) {
    if (call->state == CallState::under_way)
      oldest = call;
    else if (!call->signature.moves_nothing())
      break;
  }
  return oldest;
}

RankPage::UnderWay RankPage::under_way() const {
  UnderWay found;
  const auto add = [&found](const std::optional<CallRecord>& call) {
    found.complete &= call.has_value();
    if (call && call->state == CallState::under_way) found.calls.push_back(*call);
  };
  const std::uint64_t last = messages();
  const std::uint64_t first = std::max<std::uint64_t>(messages_open_from(), 1);
  const std::uint64_t oldest = last - std::min<std::uint64_t>(last, ring) + 1;
  found.complete = first >= oldest;
  for (std::uint64_t place = std::max(first, oldest); place <= last; ++place) add(message(place));
  if (const std::uint64_t number = calls()) add(oldest_queued(number));
  return found;
}

void RankPage::stuck(int peer) noexcept {
  const std::uint64_t word = stuck_.load(std::memory_order_relaxed);
  const std::uint64_t times = (word >> 48) % 0xffff + 1;  // never 0 again
  const std::uint64_t moves = word >> 32 & 0xffff;
  // After what was tried, and before what is looked at next (pairs with stuck_times()).
  stuck_.exchange(times << 48 | moves << 32 | static_cast<std::uint32_t>(peer + 1),
                  std::memory_order_seq_cst);
}

void RankPage::moved() noexcept {
  const std::uint64_t word = stuck_.load(std::memory_order_relaxed);
  const std::uint64_t moves = ((word >> 32) + 1) & 0xffff;
  stuck_.store((word & 0xffff0000ffffffff) | moves << 32, std::memory_order_release);
}

void RankPage::hold_back(const CallRecord& message) noexcept {
  write(held_back_, message, 1, message.number);
}

std::optional<CallRecord> RankPage::held_back() const noexcept {
  auto message = read(held_back_, 1);
  if (message) message->number = std::exchange(message->plan_hash, 0);
  return message;
}

RankPage::Stuck RankPage::stuck_times(int ranks) const noexcept {
  const std::uint64_t word = stuck_.load(std::memory_order_seq_cst);
  const std::uint64_t peer = word & 0xffffffff;
  return {static_cast<std::uint32_t>(word >> 48), static_cast<std::uint32_t>(word >> 32 & 0xffff),
          peer <= static_cast<std::uint64_t>(ranks) ? static_cast<int>(peer) - 1 : -1};
}

std::optional<RankPage::History> RankPage::history() const noexcept {
  for (int tries = 0; tries < 100; ++tries) {
    // The chain is that of `calls` unless the next call was recorded already (pairs with begin()).
    const std::uint64_t calls = last_.load(std::memory_order_acquire);
    const std::uint64_t chain = chain_.load(std::memory_order_acquire);
    const Slot& next = slots_[(calls + 1) % ring];
    if (next.number.load(std::memory_order_acquire) != calls + 1 &&
        last_.load(std::memory_order_relaxed) == calls)
      return History{calls, chain};
  }
  return std::nullopt;
}

std::optional<CallRecord> RankPage::record(std::uint64_t number) const noexcept {
  return read(slots_[number % ring], number);
}

std::optional<CallRecord> RankPage::refused() const noexcept {
  const std::uint64_t number = refused_.number.load(std::memory_order_acquire);
  auto call = read(refused_, number);
  if (call) call->number = number - 1;
  return call;
}

void RankPage::post(const Cause& cause) noexcept {
  cause_operation_.store(cause.operation, std::memory_order_relaxed);
  cause_tag_.store(cause.tag, std::memory_order_relaxed);
  const std::uint64_t word = static_cast<std::uint64_t>(cause.code) |
                             static_cast<std::uint64_t>(cause.kind) << 8 |
                             static_cast<std::uint64_t>(cause.culprit + 1) << 32;
  // An exchange, because doorbells are looked at next: a store could pass those loads.
  cause_.exchange(word, std::memory_order_seq_cst);
}

std::optional<Cause> RankPage::notice(int ranks) const noexcept {
  const std::uint64_t word = cause_.load(std::memory_order_acquire);
  if (word == 0) return std::nullopt;
  Cause cause;
  // What no correct rank writes still means that this rank has given up.
  cause.code = code_of(static_cast<int>(word & 0xff), Code::remote_error);
  cause.kind = (word >> 8 & 0xff) < call_kinds ? static_cast<CallKind>(word >> 8 & 0xff)
                                               : CallKind::allreduce;
  const std::uint64_t culprit = word >> 32;
  cause.culprit = culprit <= static_cast<std::uint64_t>(ranks) ? static_cast<int>(culprit) - 1 : -1;
  cause.operation = cause_operation_.load(std::memory_order_relaxed);
  cause.tag = cause_tag_.load(std::memory_order_relaxed);
  return cause;
}

}  // namespace khoro
