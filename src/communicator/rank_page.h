// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/doorbell.h"
#include "base/error.h"
#include "communicator/call.h"

namespace khoro {

/// Why a communicator failed, as ranks tell each other.
struct Cause {
  Code code = Code::success;
  /// The rank that is to blame: the dead, the missing, the one that aborted; -1 if none is known.
  int culprit = -1;
  /// The operation that it broke; number 0 if none was under way.
  CallKind kind = CallKind::allreduce;
  std::uint64_t operation = 0;
  std::uint32_t tag = 0;  // of a message
};

/// How far a recorded call has come.
enum class CallState : std::uint8_t { under_way = 1, finished = 2, refused = 3 };

/// A call as its caller's peers see it.
struct CallRecord {
  /// Counts the collectives of a rank, or its messages to or from one peer with one tag, from 1.
  std::uint64_t number = 0;
  Signature signature;
  std::uint64_t plan_hash = 0;  // of a collective
  std::uint64_t thread = 0;     // of the system, for reports
  CallState state = CallState::under_way;
  std::uint32_t tag = 0;  // of a message
};

/// The first pages of a rank's shared memory. Written by its rank alone, but for claim_report(),
/// and read by all; a reader trusts nothing: every value is checked as it is read, and records
/// carry their number at both ends of the reading, so that one that is being overwritten, or whose
/// writer was killed, is nothing.
///
/// It holds two rings of records: of the last 256 collectives by their number, and of the last 256
/// sends and receives by their place, which counts both from 1. A record stays `under_way` for ever
/// if its call failed.
class RankPage {
 public:
  static constexpr std::uint64_t magic_word = 0x6b686f726f2d3034;
  static constexpr std::size_t ring = 256;

  /// Who wrote the page. Set before the memory is shown to anybody, then constant.
  struct alignas(64) Identity {
    std::uint64_t magic = magic_word;
    std::uint64_t process = 0;  // the number that the process drew
    std::int32_t rank = 0;
    std::int32_t ranks = 0;
    std::int32_t pid = 0;
    std::uint64_t number_at = 0;  // the address at which the process keeps that number
  };

  explicit RankPage(const Identity& identity) noexcept : identity_(identity) {}

  DoorbellWord& doorbell() noexcept { return doorbell_; }
  const Identity& identity() const noexcept { return identity_; }

  // The writer's side: the owning rank, one thread at a time.

  /// Records the begin of a collective and chains it. Stores, no read-modify-write.
  void begin(const CallRecord& call) noexcept;
  void finish(std::uint64_t number) noexcept;
  /// Records the begin of a send or receive, and returns its place.
  std::uint64_t begin_message(const CallRecord& call) noexcept;
  void finish_message(std::uint64_t place, std::uint32_t tag = 0) noexcept;
  /// Says that of the sends and receives that began only the last is under way.
  void older_messages_ended() noexcept {
    open_from_.store(messages_.load(std::memory_order_relaxed), std::memory_order_release);
  }
  /// Records a call that was refused for its arguments; it takes no number.
  void refuse(const Signature& signature, std::uint32_t tag = 0) noexcept;
  /// Says that its calls under way could not go on when they were tried just now. `peer` is whom a
  /// collective waits for; -1: unknown.
  void stuck(int peer) noexcept;
  /// Says that messages with tags have moved since stuck() was said last. Before it is said again.
  void moved() noexcept;
  /// Says that a call cannot end because the message with a tag that comes before what it waits for
  /// has no receive, and no room to be kept in. `message` is the receive that it lacks.
  void hold_back(const CallRecord& message) noexcept;

  // These two may be called from any thread, and doorbells may be rung right after them.

  /// Tells the first cause; the caller sees to it that it is posted once.
  void post(const Cause& cause) noexcept;
  /// Says that the rank leaves in order and needs nobody any more.
  void close() noexcept { closed_.exchange(1, std::memory_order_seq_cst); }

  // Any rank's, on the page of rank 0.

  /// True for the first to ask, who then reports a failure to the log for all.
  bool claim_report() noexcept { return claimed_.exchange(1, std::memory_order_relaxed) == 0; }

  // The reader's side: any process.

  /// The number of the last collective that began; 0 before the first.
  std::uint64_t calls() const noexcept { return last_.load(std::memory_order_acquire); }
  /// That, and the hash chained over all collectives up to it, at one moment; nothing if calls
  /// follow each other too fast to see one.
  struct History {
    std::uint64_t calls = 0;
    std::uint64_t chain = 0;
  };
  std::optional<History> history() const noexcept;
  /// Nothing if it has not begun, was overwritten, or is not what a correct rank writes.
  std::optional<CallRecord> record(std::uint64_t number) const noexcept;
  /// The place of the last send or receive that began; 0 before the first.
  std::uint64_t messages() const noexcept { return messages_.load(std::memory_order_acquire); }
  /// Those before this place have ended.
  std::uint64_t messages_open_from() const noexcept {
    return open_from_.load(std::memory_order_acquire);
  }
  std::optional<CallRecord> message(std::uint64_t place) const noexcept;
  /// What has begun and has not ended: sends and receives in the order of calls, then the
  /// collective; of several that a GPU has queued, the oldest, which the others wait for.
  struct UnderWay {
    std::vector<CallRecord> calls;
    bool complete = true;  // false: there may be more, whose records could not be read
  };
  UnderWay under_way() const;
  /// The last refused call, with `number` = how many collectives, or messages if it was one, had
  /// begun before it.
  std::optional<CallRecord> refused() const noexcept;
  struct Stuck {
    std::uint32_t times = 0;  // that it was said, roughly; 0: never
    std::uint32_t moves = 0;  // that moved() was said
    int peer = -1;
  };
  Stuck stuck_times(int ranks) const noexcept;
  /// The receive that would end a wait behind a message that is held back; nothing if none is.
  std::optional<CallRecord> held_back() const noexcept;
  /// Costs one load while there is none.
  bool posted() const noexcept { return cause_.load(std::memory_order_relaxed) != 0; }
  std::optional<Cause> notice(int ranks) const noexcept;
  bool closed() const noexcept { return closed_.load(std::memory_order_acquire) != 0; }

 private:
  struct alignas(64) Slot {
    std::atomic<std::uint64_t> number{0};
    std::atomic<std::uint64_t> word{0};
    std::atomic<std::uint64_t> count{0};
    std::atomic<std::uint64_t> plan{0};
    std::atomic<std::uint64_t> thread{0};
    std::atomic<std::uint64_t> state{0};  // and above it the tag
  };
  static constexpr std::uint64_t state_word(CallState state, std::uint32_t tag) noexcept {
    return static_cast<std::uint64_t>(state) | std::uint64_t{tag} << 32;
  }
  /// What a reader finds as its plan's hash is `plan`.
  static void write(Slot& slot, const CallRecord& call, std::uint64_t key,
                    std::uint64_t plan) noexcept;
  static std::optional<CallRecord> read(const Slot& slot, std::uint64_t key) noexcept;
  /// The oldest collective that is under way up to that of `number`, or this one if none is. They
  /// end in the order in which they began, but for empty ones.
  std::optional<CallRecord> oldest_queued(std::uint64_t number) const noexcept;

  DoorbellWord doorbell_{};
  Identity identity_;
  alignas(64) std::atomic<std::uint64_t> cause_{0};
  std::atomic<std::uint64_t> cause_operation_{0};
  std::atomic<std::uint32_t> cause_tag_{0};
  alignas(64) std::atomic<std::uint32_t> closed_{0};
  std::atomic<std::uint32_t> claimed_{0};
  alignas(64) std::atomic<std::uint64_t> last_{0};
  std::atomic<std::uint64_t> chain_{0};
  alignas(64) std::atomic<std::uint64_t> messages_{0};
  std::atomic<std::uint64_t> open_from_{0};
  std::atomic<std::uint64_t> stuck_{0};  // times, moves, peer
  Slot refused_;
  Slot held_back_;
  std::array<Slot, ring> slots_;
  std::array<Slot, ring> message_slots_;  // `plan` holds the number, `number` the place
};

// The writer's side is on the way of every call, hence inline.

inline void RankPage::write(Slot& slot, const CallRecord& call, std::uint64_t key,
                            std::uint64_t plan) noexcept {
  // Whoever sees one of the new words sees that the old number is gone (pairs with read()).
  constexpr auto release = std::memory_order_release;
  slot.number.store(0, std::memory_order_relaxed);
  slot.word.store(call.signature.word(), release);
  slot.count.store(call.signature.count, release);
  slot.plan.store(plan, release);
  slot.thread.store(call.thread, release);
  slot.state.store(state_word(call.state, call.tag), release);
  slot.number.store(key, release);
}

/// The hash over all calls up to one, from that over those before it. Odd multipliers keep every
/// call's bits; this is on the way of every call, so no more than that.
inline std::uint64_t chained(std::uint64_t chain, const Signature& call) noexcept {
  return (std::rotl(chain, 23) ^ call.word() ^ call.count * 0x9e3779b97f4a7c15u) *
         0xbf58476d1ce4e5b9u;
}

inline void RankPage::begin(const CallRecord& call) noexcept {
  write(slots_[call.number % ring], call, call.number, call.plan_hash);
  // Whoever sees the new chain sees that the record is there (pairs with history()).
  chain_.store(chained(chain_.load(std::memory_order_relaxed), call.signature),
               std::memory_order_release);
  last_.store(call.number, std::memory_order_release);
}

inline void RankPage::finish(std::uint64_t number) noexcept {
  Slot& slot = slots_[number % ring];
  // A group on a GPU may have more calls than there are slots.
  if (slot.number.load(std::memory_order_relaxed) != number) return;
  slot.state.store(static_cast<std::uint64_t>(CallState::finished), std::memory_order_release);
}

/// Where the channel area begins in a rank's shared memory: a page boundary after the rank page.
inline constexpr std::size_t channel_area_offset = (sizeof(RankPage) + 4095) / 4096 * 4096;

}  // namespace khoro
