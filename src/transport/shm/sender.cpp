// SPDX-License-Identifier: Apache-2.0
#include "transport/shm/ends.h"

#include <cstring>

namespace khoro::shm {

ShmSender::ShmSender(const EndSetup& setup, std::span<std::byte> area,
                     const std::atomic<std::uint64_t>& entry)
    : setup_(setup), area_(area), entry_(entry) {}

// The peer's receiver may be opened at any time (pairs with open_receiver()).
bool ShmSender::attach() noexcept {
  if (status_ != Status::ok) return false;
  const std::uint64_t offset = entry_.load(std::memory_order_seq_cst);
  if (offset == 0) return false;
  const std::uint64_t bytes = Block::bytes(setup_.shape);
  if (offset % page_bytes != 0 || offset > area_.size() || area_.size() - offset < bytes) {
    fail();
    return false;
  }
  const Block block = Block::at(area_.data() + offset, setup_.shape);
  if (block.info->slots.load(std::memory_order_relaxed) != setup_.shape.slots ||
      block.info->slot_bytes.load(std::memory_order_relaxed) != setup_.shape.slot_bytes) {
    fail();
    return false;
  }
  block_ = block;
  return true;
}

// No slot is handed out from now on.
void ShmSender::fail() noexcept {
  status_ = Status::corrupt;
  acquirable_ = published();
}

// Looks for the slots that were given back, and for the channel itself at first.
bool ShmSender::find_credit() noexcept {
  // Pairs with decode() in this rank's receiver.
  const std::uint64_t told = setup_.partner->told.load(std::memory_order_acquire);
  if (told > released_ && told <= published())
    released_ = told;
  else
    released();
  if (block_.lines == nullptr || status_ != Status::ok) return false;
  acquirable_ = released_ + lines_of(setup_.shape.slots);
  return published() != acquirable_;
}

std::byte* ShmSender::try_acquire(std::size_t bytes) noexcept {
  if (published() == acquirable_ && !find_credit()) return nullptr;
  if (bytes <= inline_bytes) {
    place_ = Place::line;
    return block_.lines[position_].payload;
  }
  if (bytes > setup_.shape.slot_bytes) return nullptr;
  place_ = Place::body;
  return block_.bodies + position_ * block_.body_stride;
}

void ShmSender::publish(const MessageHead& head, Meta meta) noexcept {
  MessageLine& line = block_.lines[position_];
  meta.bytes = head.bytes;
  meta.form = head.form;
  line.meta.store(meta.pack(), std::memory_order_relaxed);
  if (meta.place == Place::body)
    body_bytes_.store(body_bytes_.load(std::memory_order_relaxed) + meta.bytes,
                      std::memory_order_relaxed);
  // Pairs with release() in this rank's receiver.
  line.releases.store(setup_.partner->released.load(std::memory_order_acquire),
                      std::memory_order_relaxed);
  // Pairs with try_observe(). An exchange, because the look at the doorbell must not pass it.
  const std::uint64_t number = published() + 1;
  published_.store(number, std::memory_order_relaxed);
  line.header.exchange(header(number, head.digest), std::memory_order_seq_cst);
  setup_.peer.ring();
  if (++position_ == lines_of(setup_.shape.slots)) position_ = 0;
}

void ShmSender::publish(const MessageHead& head) noexcept { publish(head, {.place = place_}); }

void ShmSender::publish_reference(const MessageHead& head, const std::byte* data) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  std::memcpy(block_.lines[position_].payload, &address, sizeof address);
  publish(head, {.place = Place::reference});
}

void ShmSender::publish_put(const MessageHead& head) noexcept {
  publish(head, {.place = window_.data != nullptr ? Place::window : place_, .put = true});
  ++windows_filled_;
  window_open_ = false;
}

std::uint64_t ShmSender::released() noexcept {
  if (block_.lines == nullptr && !attach()) return released_;
  // Pairs with report() in the receiver.
  const std::uint64_t told = block_.credit->released.load(std::memory_order_seq_cst);
  if (told > published()) fail();
  // It may lag behind what messages have told.
  if (told > released_ && status_ == Status::ok) released_ = told;
  return released_;
}

const Window* ShmSender::try_window() noexcept {
  if (window_open_) return &window_;
  if (block_.lines == nullptr && !attach()) return nullptr;
  const OfferLine& offer = block_.offers[windows_filled_ % setup_.shape.slots];
  if (offer.number.load(std::memory_order_seq_cst) != windows_filled_ + 1) return nullptr;
  const auto address = static_cast<std::uintptr_t>(offer.address.load(std::memory_order_relaxed));
  if (address != 0 && !setup_.same_process) {
    fail();
    return nullptr;
  }
  window_ = {reinterpret_cast<std::byte*>(address), offer.bytes.load(std::memory_order_relaxed)};
  window_open_ = true;
  return &window_;
}

}  // namespace khoro::shm
