// SPDX-License-Identifier: Apache-2.0
#include "communicator/rank_page.h"

#include <bit>

namespace khoro {
namespace {

std::optional<Signature> signature_of(std::uint64_t word, std::uint64_t count) noexcept {
  Signature signature;
  signature.kind = static_cast<CallKind>(word & 0xff);
  signature.dtype = static_cast<Dtype>(word >> 8 & 0xff);
  signature.reduction = static_cast<Reduction>(word >> 16 & 0xff);
  signature.peer = static_cast<std::int32_t>(word >> 32);
  signature.count = count;
  if ((word & 0xff) >= call_kinds) return std::nullopt;
  return signature;
}

}  // namespace

void RankPage::write(Slot& slot, const CallRecord& call, std::uint64_t number) noexcept {
  constexpr auto relaxed = std::memory_order_relaxed;
  slot.number.store(0, relaxed);
  // Whoever sees one of the new words sees that the old number is gone (pairs with the fence in
  // read()).
  std::atomic_thread_fence(std::memory_order_release);
  slot.word.store(call.signature.word(), relaxed);
  slot.count.store(call.signature.count, relaxed);
  slot.plan.store(call.plan_hash, relaxed);
  slot.thread.store(call.thread, relaxed);
  slot.state.store(static_cast<std::uint64_t>(call.state), relaxed);
  slot.number.store(number, std::memory_order_release);
}

std::optional<CallRecord> RankPage::read(const Slot& slot, std::uint64_t number) noexcept {
  constexpr auto relaxed = std::memory_order_relaxed;
  if (number == 0 || slot.number.load(std::memory_order_acquire) != number) return std::nullopt;
  const auto signature = signature_of(slot.word.load(relaxed), slot.count.load(relaxed));
  CallRecord call;
  call.number = number;
  call.plan_hash = slot.plan.load(relaxed);
  call.thread = slot.thread.load(relaxed);
  const std::uint64_t state = slot.state.load(relaxed);
  std::atomic_thread_fence(std::memory_order_acquire);
  if (slot.number.load(relaxed) != number || !signature || state < 1 || state > 3)
    return std::nullopt;
  call.signature = *signature;
  call.state = static_cast<CallState>(state);
  return call;
}

void RankPage::begin(const CallRecord& call) noexcept {
  write(slots_[call.number % ring], call, call.number);
  // Odd multipliers keep every call's bits; this is on the way of every call, so no more than that.
  const std::uint64_t old = chain_.load(std::memory_order_relaxed);
  chain_.store(
      (std::rotl(old, 23) ^ call.signature.word() ^ call.signature.count * 0x9e3779b97f4a7c15u) *
          0xbf58476d1ce4e5b9u,
      std::memory_order_relaxed);
  last_.store(call.number, std::memory_order_release);
}

void RankPage::finish(std::uint64_t number) noexcept {
  slots_[number % ring].state.store(static_cast<std::uint64_t>(CallState::finished),
                                    std::memory_order_release);
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
