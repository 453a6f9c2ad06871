// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <new>

#include "transport/tcp/ends.h"

namespace khoro::tcp {

Slots::Slots(ChannelShape shape)
    : lines_(lines_of(shape.slots)),
      stride_(to_lines(shape.slot_bytes) + header_room),
      memory_(allocate_aligned(lines_ * stride_)) {
  if (!memory_) throw std::bad_alloc();
}

TcpSender::TcpSender(Connection& connection, std::uint8_t index, ChannelShape shape)
    : connection_(connection),
      index_(index),
      shape_(shape),
      slots_(shape),
      ledger_(lines_of(shape.slots)),
      offers_(shape.slots) {
  connection_.open(index_, *this, shape_);
}

/// Whether there is a slot, after a look if there was none.
bool TcpSender::find_credit() noexcept {
  const auto has_slot = [this] { return open_ && published_ - released_ < lines_of(shape_.slots); };
  if (!has_slot()) connection_.look(nullptr);
  return has_slot() && status() == Status::ok;
}

std::byte* TcpSender::try_acquire(std::size_t bytes) noexcept {
  if (!find_credit() || bytes > shape_.slot_bytes) return nullptr;
  return slots_.at(place_);
}

void TcpSender::send(FrameKind kind, const MessageHead& head, const std::byte* data) noexcept {
  Header frame = Header::make(kind, index_);
  frame.form = head.form;
  frame.digest = head.digest;
  frame.number = static_cast<std::uint32_t>(++published_);
  frame.bytes = head.bytes;
  if (TcpReceiver* const partner = connection_.receiver(index_)) {
    frame.releases = static_cast<std::uint32_t>(partner->released());
    partner->releases_told();
  }
  std::byte* const in_front = slots_.at(place_) - sizeof frame;
  std::memcpy(in_front, &frame, sizeof frame);
  slots_.use(place_);
  connection_.send({.data = in_front,
                    .bytes = sizeof frame,
                    .ledger = &ledger_,
                    .number = published_,
                    .header = {}},
                   {data, static_cast<std::size_t>(head.bytes)});
  place_ = ledger_.all_written() ? 0 : slots_.next(place_);
}

void TcpSender::publish(const MessageHead& head) noexcept {
  send(FrameKind::data, head, slots_.at(place_));
}

void TcpSender::publish_reference(const MessageHead& head, const std::byte* data) noexcept {
  send(FrameKind::data, head, data);
}

void TcpSender::publish_put(const MessageHead& head) noexcept {
  ++windows_filled_;
  send(FrameKind::put, head, slots_.at(place_));
}

std::uint64_t TcpSender::released() noexcept {
  if (released_ != published_) connection_.look(nullptr);
  return released_;
}

std::uint64_t TcpSender::returned() noexcept {
  if (!ledger_.all_written()) connection_.look(nullptr);
  return ledger_.written_up_to(published_);
}

bool TcpSender::flushed() noexcept {
  if (!connection_.flushed()) connection_.look(nullptr);
  return connection_.flushed();
}

const Window* TcpSender::try_window() noexcept {
  if (windows_filled_ == offered_) connection_.look(nullptr);
  if (windows_filled_ == offered_) return nullptr;
  window_ = {nullptr, offers_[windows_filled_ % offers_.size()]};
  return &window_;
}

bool TcpSender::take_releases(std::uint32_t low_bits) noexcept {
  const std::uint64_t told = widen(released_, low_bits);
  if (told > published_) return false;
  released_ = told;
  return true;
}

bool TcpSender::take_offer(std::uint64_t bytes) noexcept {
  if (!open_ || offered_ - windows_filled_ == offers_.size()) return false;
  offers_[offered_++ % offers_.size()] = bytes;
  return true;
}

void TcpSender::take_open(ChannelShape shape) noexcept {
  open_ = shape.slots == shape_.slots && shape.slot_bytes == shape_.slot_bytes;
  if (!open_) status_ = Status::corrupt;
}

}  // namespace khoro::tcp
