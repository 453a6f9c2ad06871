// SPDX-License-Identifier: Apache-2.0
#include "transport/shm/ends.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace khoro::shm {

ShmSender::ShmSender(const EndSetup& setup, std::span<std::byte> area,
                     const std::atomic<std::uint64_t>& entry)
    : setup_(setup),
      area_(area),
      entry_(entry),
      elsewhere_(setup.same_process ? 0 : lines_of(setup.shape.slots)),
      parts_(lines_of(setup.shape.slots)) {}

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
      block.info->slot_bytes.load(std::memory_order_relaxed) != setup_.shape.slot_bytes ||
      block.info->parts_bytes.load(std::memory_order_relaxed) != setup_.shape.parts_bytes) {
    fail();
    return false;
  }
  block_ = block;
  peer_sees_arena_ = block.info->sees_arena.load(std::memory_order_relaxed) != 0;
  peer_reads_rest_ = block.info->reads_rest.load(std::memory_order_relaxed) != 0;
  return true;
}

// No slot is handed out from now on.
void ShmSender::fail() noexcept {
  status_ = Status::corrupt;
  acquirable_ = published();
}

void ShmSender::hear_releases() noexcept {
  // Pairs with decode() in this rank's receiver.
  const std::uint64_t told = setup_.partner->told.load(std::memory_order_acquire);
  if (told > released_ && told <= published())
    released_ = told;
  else
    released();
}

// Looks for the slots that were given back, and for the channel itself at first.
bool ShmSender::find_credit() noexcept {
  hear_releases();
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
  if (bytes <= setup_.shape.small_bytes()) {
    place_ = Place::body;
    return block_.bodies + position_ * block_.stride;
  }
  if (!wide_ && bytes <= ChannelShape::part_most && Block::has_large(setup_.shape))
    return find_part(bytes);
  if (bytes > setup_.shape.slot_bytes) return nullptr;
  place_ = Place::large;
  return block_.large + position_ * block_.large_stride;
}

// Sizes are powers of two, and so a single part that is unreleased lies within part_most bytes and
// leaves room for any. The release of a part is told at once.
std::byte* ShmSender::find_part(std::size_t bytes) noexcept {
  const std::uint64_t size = std::bit_ceil(std::uint64_t{bytes});
  const std::uint64_t number = published() + 1;
  if (next_part_.number != number || next_part_.bytes != size) {
    const std::optional<std::uint64_t> first = find_room(size);
    if (!first) return nullptr;
    next_part_ = {number, *first, size};
  }
  place_ = Place::part;
  return block_.parts + next_part_.first;
}

std::optional<std::uint64_t> ShmSender::find_room(std::uint64_t size) noexcept {
  const std::uint64_t all = setup_.shape.parts_bytes;
  // No more of them than there are lines are under way: little memory stays in the caches.
  const std::uint64_t used = std::min(all, size * lines_of(setup_.shape.slots));
  const Part last = parts_sent_ == 0 ? Part{} : parts_[(parts_sent_ - 1) % parts_.size()];
  std::uint64_t next = (last.first + last.bytes + size - 1) / size * size;
  if (next + size > used) next = 0;
  if (is_free(next, size)) return next;
  hear_releases();
  if (is_free(next, size)) return next;
  for (next = 0; next < all; next += size)
    if (is_free(next, size)) return next;
  return std::nullopt;
}

bool ShmSender::is_free(std::uint64_t first, std::uint64_t size) noexcept {
  while (parts_released_ < parts_sent_ &&
         parts_[parts_released_ % parts_.size()].number <= released_)
    ++parts_released_;
  for (std::uint64_t k = parts_released_; k < parts_sent_; ++k) {
    const Part& part = parts_[k % parts_.size()];
    if (part.first < first + size && first < part.first + part.bytes) return false;
  }
  return true;
}

void ShmSender::publish(const MessageHead& head, Meta meta) noexcept {
  MessageLine& line = block_.lines[position_];
  meta.bytes = head.bytes;
  meta.form = head.form;
  line.meta.store(meta.pack(), std::memory_order_relaxed);
  if (meta.place == Place::part) {
    std::memcpy(line.payload, &next_part_.first, sizeof next_part_.first);
    parts_[parts_sent_++ % parts_.size()] = next_part_;
  }
  if (meta.place == Place::body || meta.place == Place::part || meta.place == Place::large)
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

Lending ShmSender::lending(const std::byte* data, std::uint64_t bytes) noexcept {
  if (setup_.same_process) return Lending::in_place;
  if (block_.lines == nullptr && !attach()) return Lending::none;
  if (peer_sees_arena_ && shared_place(setup_, data, bytes)) return Lending::in_place;
  return peer_reads_rest_ ? Lending::fetched : Lending::none;
}

void ShmSender::publish_reference(const MessageHead& head, const std::byte* data) noexcept {
  const std::optional<std::uint64_t> shared = shared_place(setup_, data, head.bytes);
  const bool in_place = shared && (setup_.same_process || peer_sees_arena_);
  const std::uint64_t place = in_place ? *shared : reinterpret_cast<std::uintptr_t>(data);
  std::memcpy(block_.lines[position_].payload, &place, sizeof place);
  lent_ = published() + 1;
  if (!in_place) elsewhere_[position_] = {data, lent_};
  publish(head, {.place = in_place ? Place::reference : Place::elsewhere});
}

// The receiver cannot read what it was lent: it goes into the slots of its messages after all.
void ShmSender::put_into_slots() noexcept {
  peer_reads_rest_ = false;
  for (std::uint32_t at = 0; at < elsewhere_.size(); ++at) {
    const auto [data, number] = elsewhere_[at];
    if (number <= released_) continue;
    std::atomic<std::uint64_t>& word = block_.lines[at].meta;
    Meta meta = Meta::unpack(word.load(std::memory_order_relaxed));
    std::memcpy(block_.body(at, meta.bytes), data, meta.bytes);
    body_bytes_.store(body_bytes_.load(std::memory_order_relaxed) + meta.bytes,
                      std::memory_order_relaxed);
    meta.place = block_.place_of(meta.bytes);
    word.exchange(meta.pack(), std::memory_order_seq_cst);  // pairs with decode()
  }
  setup_.peer.ring();
}

// What the caller does with its memory afterwards must not pass. Pairs with intact().
void ShmSender::withdraw() noexcept {
  if (block_.lines == nullptr || lent_ <= released()) return;
  block_.info->withdrawn.store(1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
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
  if (peer_reads_rest_ && block_.info->refused.load(std::memory_order_seq_cst) != 0)
    put_into_slots();
  return released_;
}

const Window* ShmSender::try_window() noexcept {
  if (window_open_) return &window_;
  if (block_.lines == nullptr && !attach()) return nullptr;
  const OfferLine& offer = block_.offers[windows_filled_ % setup_.shape.slots];
  if (offer.number.load(std::memory_order_seq_cst) != windows_filled_ + 1) return nullptr;
  const std::uint64_t place = offer.place.load(std::memory_order_relaxed);
  window_ = {nullptr, offer.bytes.load(std::memory_order_relaxed)};
  const bool reachable = place != 0 && (setup_.same_process || !setup_.peer_arena.empty());
  if (reachable) window_.data = shared_data(setup_, place - 1, window_.bytes);
  if (reachable && window_.data == nullptr) {
    fail();
    return nullptr;
  }
  window_open_ = true;
  return &window_;
}

}  // namespace khoro::shm
