// SPDX-License-Identifier: Apache-2.0
#include "transport/shm/ends.h"

#include <cstring>

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
  const Meta meta = Meta::unpack(line.meta.load(std::memory_order_relaxed));
  message_.head = {digest, meta.bytes, meta.form};
  if (status_ != Status::ok || !place(line, meta)) {
    status_ = Status::corrupt;
    return false;
  }
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
  const Window& window = windows_[filled_ % setup_.shape.slots];
  if (meta.put && (filled_ == offered_ || meta.bytes > window.bytes)) return false;
  message_.by_reference = meta.place == Place::reference || meta.place == Place::window;
  switch (meta.place) {
    case Place::line:
      message_.data = line.payload;
      return meta.bytes <= inline_bytes;
    case Place::body:
      message_.data = block_.bodies + position_ * block_.body_stride;
      return meta.bytes <= setup_.shape.slot_bytes;
    case Place::reference: {
      std::uintptr_t address = 0;
      std::memcpy(&address, line.payload, sizeof address);
      message_.data = reinterpret_cast<const std::byte*>(address);
      return setup_.same_process && !meta.put;
    }
    case Place::window:
      message_.data = window.data;
      return setup_.same_process && meta.put;
  }
  return false;
}

void ShmReceiver::release() noexcept {
  if (!observed_) return;
  if (put_) ++filled_;
  observed_ = false;
  // Pairs with publish() in this rank's sender.
  setup_.partner->released.store(++released_, std::memory_order_release);
  if (++position_ == lines_of(setup_.shape.slots)) position_ = 0;
  // Someone waits to have referenced memory back, so that is told at once.
  if (message_.by_reference || released_ - reported_ >= batch_) report();
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
  windows_[at] = window;
  OfferLine& offer = block_.offers[at];
  const auto address = setup_.same_process ? reinterpret_cast<std::uintptr_t>(window.data) : 0;
  offer.address.store(address, std::memory_order_relaxed);
  offer.bytes.store(window.bytes, std::memory_order_relaxed);
  // Pairs with try_window() in the sender.
  offer.number.exchange(++offered_, std::memory_order_seq_cst);
  setup_.peer.ring();
  return true;
}

}  // namespace khoro::shm
