// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "base/descriptor.h"

namespace khoro {

/// The word that a sleeper leaves where its peers can see it. It lies in shared memory.
struct alignas(64) DoorbellWord {
  enum : std::uint32_t { awake = 0, on_futex = 1, on_descriptor = 2 };
  std::atomic<std::uint32_t> state;
};
static_assert(sizeof(DoorbellWord) == 64);

/// Wakes one waiting thread of one rank, from any thread of any process that maps the word.
///
/// Protocol. The sleeper calls `arm()`, looks once more for work, and only then sleeps; a worker
/// makes its work visible and then calls `ring()`. Either the sleeper sees the work or the worker
/// sees the sleeper, because four accesses are sequentially consistent: the worker writes the work
/// by a seq_cst read-modify-write (it must be a full fence: a store may pass the load that
/// follows), ring() loads the state, arm() exchanges it, and the sleeper loads the work. In their
/// one order either arm() comes before ring()'s load, or the work before the sleeper's look. On
/// x86-64 the two loads cost nothing extra. Spurious returns are legal, lost ones are not.
///
/// What cannot ring, a socket that has something to be read, can wake the owner too: see besides().
///
/// Borrows the word and the descriptors: whoever mapped and opened them keeps them alive.
class Doorbell {
 public:
  Doorbell() = default;
  Doorbell(DoorbellWord& word, int descriptor = -1, int besides = -1)
      : word_(&word), descriptor_(descriptor), besides_(besides) {}

  /// Any thread. Costs one load while nobody sleeps. The work was made visible by a seq_cst
  /// read-modify-write.
  void ring() const noexcept {
    if (word_->state.load(std::memory_order_seq_cst) != DoorbellWord::awake) wake();
  }

  /// Owner only. Announces that the owner is about to sleep on `kind`.
  void arm(std::uint32_t kind) const noexcept {
    word_->state.exchange(kind, std::memory_order_seq_cst);
  }
  /// Owner only. Takes the announcement back; rings are free again.
  void disarm() const noexcept {
    word_->state.store(DoorbellWord::awake, std::memory_order_relaxed);
  }
  bool armed() const noexcept {
    return word_->state.load(std::memory_order_acquire) != DoorbellWord::awake;
  }

  DoorbellWord* word() const noexcept { return word_; }
  /// An eventfd that `ring()` makes readable while the owner sleeps on_descriptor: of the doorbell
  /// alone, or the bell of the owner's process (see Sleepers); -1: the owner is in this process, in
  /// which Sleepers finds it.
  int descriptor() const noexcept { return descriptor_; }
  /// Wakes the owner, who sleeps on_descriptor, while it is readable; -1: there is none.
  int besides() const noexcept { return besides_; }

 private:
  void wake() const noexcept;

  DoorbellWord* word_ = nullptr;
  int descriptor_ = -1;
  int besides_ = -1;
};

/// How who waits for these sleeps: on a futex where one word is all that can wake it.
inline std::uint32_t kind_of_sleep(std::span<const Doorbell> doorbells) noexcept {
  return doorbells.size() == 1 && doorbells[0].besides() < 0 ? DoorbellWord::on_futex
                                                             : DoorbellWord::on_descriptor;
}

/// The eventfd of a doorbell: non-blocking, so that neither a ring nor a drain can hang. Throws
/// `Error`.
Descriptor make_doorbell_descriptor();

#ifdef KHORO_TEST_SWITCHES
/// From now on every `period`-th wake-up of this process is lost (0: none): a planted fault, which
/// tests must find.
void lose_wakeups(std::uint64_t period) noexcept;
#endif

}  // namespace khoro
