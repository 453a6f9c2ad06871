// SPDX-License-Identifier: Apache-2.0
#include "communicator/rank_page.h"

namespace khoro {
namespace {

std::optional<Signature> signature_of(std::uint64_t word, std::uint64_t count) noexcept {
  const Signature signature = Signature::of(word, count);
  if (static_cast<int>(signature.kind) >= call_kinds) return std::nullopt;
  return signature;
}

}  // namespace

std::optional<CallRecord> RankPage::read(const Slot& slot, std::uint64_t number) noexcept {
  // The words before the number once more (pairs with write()).
  constexpr auto acquire = std::memory_order_acquire;
  if (number == 0 || slot.number.load(acquire) != number) return std::nullopt;
  const auto signature = signature_of(slot.word.load(acquire), slot.count.load(acquire));
  CallRecord call;
  call.number = number;
  call.plan_hash = slot.plan.load(acquire);
  call.thread = slot.thread.load(acquire);
  const std::uint64_t state = slot.state.load(acquire);
  if (slot.number.load(std::memory_order_relaxed) != number || !signature || state < 1 || state > 3)
    return std::nullopt;
  call.signature = *signature;
  call.state = static_cast<CallState>(state);
  return call;
}

void RankPage::refuse(const Signature& signature) noexcept {
  CallRecord call;
  call.signature = signature;
  call.state = CallState::refused;
  // Number 0 means nothing; the first call refused before any other has 1.
  write(refused_, call, last_.load(std::memory_order_relaxed) + 1);
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
  const int code = static_cast<int>(word & 0xff);
  // What no correct rank writes still means that this rank has given up.
  const bool known = code > 0 && code <= static_cast<int>(Code::out_of_memory);
  cause.code = known ? static_cast<Code>(code) : Code::remote_error;
  cause.kind = (word >> 8 & 0xff) < call_kinds ? static_cast<CallKind>(word >> 8 & 0xff)
                                               : CallKind::allreduce;
  const std::uint64_t culprit = word >> 32;
  cause.culprit = culprit <= static_cast<std::uint64_t>(ranks) ? static_cast<int>(culprit) - 1 : -1;
  cause.operation = cause_operation_.load(std::memory_order_relaxed);
  return cause;
}

}  // namespace khoro
