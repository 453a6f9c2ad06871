// SPDX-License-Identifier: Apache-2.0
#include "transport/shm/ends.h"

#include <cstring>
#include <utility>

namespace khoro::shm {

ShmReceiver::ShmReceiver(const EndSetup& setup, const Block& block)
    : setup_(setup),
      block_(block),
      batch_(release_batch(setup.shape.slots)),
      windows_(setup.shape.slots) {}

Observed ShmReceiver::try_observe(std::uint32_t digest) noexcept {
  MessageLine& line = block_.lines[position_];
  // Pairs with publish() in the sender; seq_cst because a sleeper's last look is this one.
  const std::uint64_t head = line.header.load(std::memory_order_seq_cst);
  if (number_of(head) != static_cast<std::uint32_t>(released_ + 1)) return {status_, nullptr};
  if (digest_of(head) != digest) return {Status::mismatch, nullptr};
  if (!observed_ && !decode(line, digest)) return {status_, nullptr};
  return {Status::ok, &message_};
}

bool ShmReceiver::decode(MessageLine& line, std::uint32_t digest) noexcept {
  // Acquires what put_into_slots() in the sender may have written since.
  const Meta meta = Meta::unpack(line.meta.load(std::memory_order_acquire));
  message_.head = {digest, meta.bytes, meta.form};
  if (status_ != Status::ok || !place(line, meta)) {
    status_ = Status::corrupt;
    return false;
  }
  fetched_ = meta.place == Place::elsewhere;
  if (fetched_ && !fetch(line, meta)) return false;
  aimed_ = nullptr;
  if (meta.bytes == 0) message_.data = nullptr;
  put_ = meta.put;
  observed_ = true;
  // Pairs with find_credit() in this rank's sender.
  setup_.partner->told.store(line.releases.load(std::memory_order_relaxed),
                             std::memory_order_release);
  return true;
}

// Finds the payload; false if no correct sender writes that.
bool ShmReceiver::place(MessageLine& line, const Meta& meta) noexcept {
  const Offered& offered = windows_[filled_ % setup_.shape.slots];
  if (meta.put && (filled_ == offered_ || meta.bytes > offered.window.bytes)) return false;
  message_.by_reference = meta.place == Place::reference || meta.place == Place::window;
  part_ = meta.place == Place::part;
  switch (meta.place) {
    case Place::line:
      message_.data = line.payload;
      return meta.bytes <= inline_bytes;
    case Place::body:
      message_.data = block_.bodies + position_ * block_.stride;
      return meta.bytes <= setup_.shape.small_bytes();
    case Place::part: {
      std::uint64_t first = 0;
      std::memcpy(&first, line.payload, sizeof first);
      if (!Block::has_large(setup_.shape) || first % page_bytes != 0 ||
          first > setup_.shape.parts_bytes)
        return false;
      message_.data = block_.parts + first;
      return meta.bytes <= setup_.shape.parts_bytes - first &&
             meta.bytes <= setup_.shape.slot_bytes;
    }
    case Place::large:
      message_.data = block_.large + position_ * block_.large_stride;
      return Block::has_large(setup_.shape) && meta.bytes <= setup_.shape.slot_bytes;
    case Place::reference: {
      std::uint64_t place = 0;
      std::memcpy(&place, line.payload, sizeof place);
      message_.data = shared_data(setup_, place, meta.bytes);
      return (message_.data != nullptr || meta.bytes == 0) &&
             meta.bytes <= setup_.shape.slot_bytes && !meta.put;
    }
    case Place::elsewhere:
      message_.data = block_.body(position_, meta.bytes);
      return setup_.peer_memory && meta.bytes <= setup_.shape.slot_bytes && !meta.put;
    case Place::window:
      message_.data = offered.window.data;
      return offered.reachable && meta.put;
  }
  return false;
}

// Copies what was lent into the message's slot, or to where it is wanted. False: not now, and then
// it comes in another way or there is news to wait for.
bool ShmReceiver::fetch(MessageLine& line, const Meta& meta) noexcept {
  if (block_.info->refused.load(std::memory_order_relaxed) != 0) return false;
  std::uint64_t from = 0;
  std::memcpy(&from, line.payload, sizeof from);
  const bool wanted = aimed_ != nullptr && expected_.digest == message_.head.digest &&
                      expected_.bytes == meta.bytes && meta.form == Form::dtype;
  auto* const to = wanted ? aimed_ : const_cast<std::byte*>(message_.data);
  if (!setup_.peer_memory.read(to, from, meta.bytes)) {
    // Pairs with released() in the sender, which may sleep.
    block_.info->refused.exchange(1, std::memory_order_seq_cst);
    setup_.peer.ring();
    return false;
  }
  message_.data = to;
  message_.by_reference = wanted;
  return intact();
}

void ShmReceiver::aim(const MessageHead& expected, std::byte* data) noexcept {
  if (observed_) return;
  expected_ = expected;
  aimed_ = data;
}

bool ShmReceiver::intact() noexcept {
  // What was read before this was read before that. Pairs with withdraw() in the sender.
  std::atomic_thread_fence(std::memory_order_acquire);
  return block_.info->withdrawn.load(std::memory_order_relaxed) == 0;
}

void ShmReceiver::release() noexcept {
  if (!observed_) return;
  if (put_) ++filled_;
  observed_ = false;
  // Pairs with publish() in this rank's sender.
  setup_.partner->released.store(++released_, std::memory_order_release);
  if (++position_ == lines_of(setup_.shape.slots)) position_ = 0;
  // Someone waits to have referenced memory back, or few parts, so that is told at once.
  if (message_.by_reference || fetched_ || part_ || released_ - reported_ >= batch_) report();
}

// Pairs with released() in the sender. An exchange, because the look at the doorbell must not pass.
void ShmReceiver::report() noexcept {
  reported_ = released_;
  block_.credit->released.exchange(released_, std::memory_order_seq_cst);
  setup_.peer.ring();
}

bool ShmReceiver::try_offer(const Window& window) noexcept {
  if (offered_ - filled_ == setup_.shape.slots) return false;
  const std::uint64_t at = offered_ % setup_.shape.slots;
  std::optional<std::uint64_t> place;
  if (window.data != nullptr && (setup_.same_process || window.whole_pages))
    place = shared_place(setup_, window.data, window.bytes);
  windows_[at] = {window, place.has_value()};
  OfferLine& offer = block_.offers[at];
  offer.place.store(place ? *place + 1 : 0, std::memory_order_relaxed);
  offer.bytes.store(window.bytes, std::memory_order_relaxed);
  // Pairs with try_window() in the sender.
  offer.number.exchange(++offered_, std::memory_order_seq_cst);
  setup_.peer.ring();
  return true;
}

bool ShmReceiver::move_windows() noexcept {
  bool moved = true;
  for (std::uint64_t number = filled_; number < offered_ && !setup_.same_process; ++number) {
    Offered& offered = windows_[number % setup_.shape.slots];
    if (std::exchange(offered.reachable, false))
      moved &= setup_.arena->move(offered.window.data, offered.window.bytes);
  }
  return moved;
}

}  // namespace khoro::shm
