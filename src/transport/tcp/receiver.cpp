// SPDX-License-Identifier: Apache-2.0
#include "transport/tcp/ends.h"

namespace khoro::tcp {

TcpReceiver::TcpReceiver(Connection& connection, std::uint8_t index, ChannelShape shape)
    : connection_(connection),
      index_(index),
      shape_(shape),
      slots_(shape),
      lines_(lines_of(shape.slots)),
      windows_(shape.slots) {
  connection_.open(index_, *this, shape_);
}

Observed TcpReceiver::try_observe(std::uint32_t digest) noexcept {
  if (!has_message()) connection_.look(this);
  if (!has_message()) return {connection_.status(), nullptr};
  const Message& message = lines_[released_ % lines_.size()].message;
  if (message.head.digest != digest) return {Status::mismatch, nullptr};
  return {Status::ok, &message};
}

void TcpReceiver::release() noexcept {
  if (!has_message()) return;
  if (lines_[released_ % lines_.size()].put) ++taken_;
  ++released_;
  if (released_ - reported_ < release_batch(shape_.slots)) return;
  Header frame = Header::make(FrameKind::credit, index_);
  frame.releases = static_cast<std::uint32_t>(released_);
  releases_told();
  connection_.tell(frame);
}

bool TcpReceiver::begin(const Header& frame, std::size_t parts, std::byte*& to) noexcept {
  const bool put = frame.kind == FrameKind::put;
  if (arrived_ - released_ == lines_.size() || frame.bytes > shape_.slot_bytes ||
      frame.number != static_cast<std::uint32_t>(arrived_ + 1))
    return false;
  const Window& window = windows_[filled_ % windows_.size()];
  if (put && (filled_ == offered_ || frame.bytes > window.bytes)) return false;
  place_ = arrived_ == released_ ? 0 : slots_.next(place_);
  Line& at = lines_[arrived_++ % lines_.size()];
  at.put = put;
  at.missing = parts;
  if (put) ++filled_;
  std::byte* named = nullptr;
  if (put) named = window.data;
  if (is_expected(frame)) named = aimed_;
  // Only the next message, whatever it is.
  aimed_ = nullptr;
  if (named == nullptr) slots_.use(place_);
  to = named != nullptr ? named : slots_.at(place_);
  at.message = {
      {frame.digest, frame.bytes, frame.form}, parts > 0 ? to : nullptr, named != nullptr};
  return true;
}

bool TcpReceiver::is_expected(const Header& frame) const noexcept {
  return aimed_ != nullptr && frame.bytes > 0 && frame.kind == FrameKind::data &&
         frame.digest == expected_.digest && frame.bytes == expected_.bytes &&
         frame.form == Form::dtype;
}

bool TcpReceiver::try_offer(const Window& window) noexcept {
  if (offered_ - taken_ == windows_.size()) return false;
  if (!attached_) connection_.look(this);
  windows_[offered_++ % windows_.size()] = window;
  if (attached_) tell_offer(window);
  return true;
}

void TcpReceiver::take_attach() noexcept {
  attached_ = true;
  for (std::uint64_t at = 0; at < offered_; ++at) tell_offer(windows_[at]);
}

void TcpReceiver::tell_offer(const Window& window) noexcept {
  Header frame = Header::make(FrameKind::offer, index_);
  frame.bytes = window.bytes;
  connection_.tell(frame);
}

}  // namespace khoro::tcp
