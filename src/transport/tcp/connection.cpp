// SPDX-License-Identifier: Apache-2.0
#include "transport/tcp/connection.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "transport/tcp/ends.h"

namespace khoro::tcp {
namespace {

/// Reads of one look, so that a peer that sends without end does not hold the others up.
constexpr int most_reads = 16;

struct ErrnoKept {
  const int saved = errno;
  ~ErrnoKept() { errno = saved; }
};

}  // namespace

Connection::Connection(Readiness& readiness, std::span<const int> sockets)
    : readiness_(readiness), blocked_(sockets.size()), expected_(sockets.size()) {
  opened_.fill({.slots = 0, .slot_bytes = 0});
  for (const int socket : sockets) {
    stripes_.push_back(std::make_unique<Stripe>(socket));
    readiness_.add(*this, socket);
  }
}

Connection::~Connection() { fail(Status::closed); }

void Connection::open(std::uint8_t index, TcpSender& sender, ChannelShape shape) {
  const std::size_t lines = lines_of(shape.slots);
  stripes_[0]->reserve(2 * lines + 1);
  for (std::size_t i = 1; i < stripes_.size(); ++i) stripes_[i]->reserve(lines);
  senders_[index] = &sender;
  if (opened_[index].slots != 0) sender.take_open(opened_[index]);
  tell(Header::make(FrameKind::attach, index));
}

void Connection::open(std::uint8_t index, TcpReceiver& receiver, ChannelShape shape) {
  const std::size_t lines = lines_of(shape.slots);
  stripes_[0]->reserve(lines + shape.slots + 1);  // credits, offers and this
  for (std::size_t i = 1; i < stripes_.size(); ++i) expected_[i].reserve(lines);
  receivers_[index] = &receiver;
  if (attached_[index]) receiver.take_attach();
  Header frame = Header::make(FrameKind::open, index);
  frame.number = shape.slots;
  frame.bytes = shape.slot_bytes;
  tell(frame);
}

/// What of the sender still waits would be sent from memory that is gone.
void Connection::close(std::uint8_t index, const TcpSender& sender) noexcept {
  if (senders_[index] != &sender) return;
  if (!flushed()) fail(Status::closed);
  senders_[index] = nullptr;
}

void Connection::close(std::uint8_t index, const TcpReceiver& receiver) noexcept {
  if (receivers_[index] != &receiver) return;
  if (landing_.left > 0 || parts_expected_ > 0) fail(Status::closed);
  receivers_[index] = nullptr;
}

void Connection::fail(Status status) noexcept {
  if (status_ != Status::ok) return;
  status_ = status;
  mute();
  for (std::size_t i = 0; i < stripes_.size(); ++i) {
    readiness_.remove(stripes_[i]->socket());
    expected_[i].clear();
  }
  parts_expected_ = 0;
  landing_ = {};
}

/// The peer takes nothing any more. What it had sent before may be there still.
void Connection::mute() noexcept {
  mute_ = true;
  for (std::size_t i = 0; i < stripes_.size(); ++i) {
    stripes_[i]->drop();
    note_flow(i);
  }
}

void Connection::note_flow(std::size_t stripe) noexcept {
  const bool blocked = stripes_[stripe]->blocked();
  if (blocked == (blocked_[stripe] != 0)) return;
  blocked_[stripe] = blocked;
  const int socket = stripes_[stripe]->socket();
  blocked ? readiness_.blocks(*this, socket) : readiness_.flows(*this, socket);
}

void Connection::tell(const Header& frame) noexcept {
  send({.data = nullptr, .bytes = sizeof frame, .ledger = nullptr, .number = 0, .header = frame},
       {});
}

void Connection::send(Piece head, std::span<const std::byte> payload) noexcept {
  if (mute_) return;
  const ErrnoKept kept;
  const Cut cut(payload.size(), stripes_.size());
  Piece pieces[2] = {head, head};
  pieces[1].data = payload.data();
  pieces[1].bytes = cut.parts > 0 ? cut.size(0) : 0;
  const bool adjacent = head.data != nullptr && head.data + head.bytes == payload.data();
  if (adjacent) pieces[0].bytes += pieces[1].bytes;
  const std::size_t count = adjacent || payload.empty() ? 1 : 2;
  bool sound = stripes_[0]->send({pieces, count});
  note_flow(0);
  for (std::size_t i = 1; sound && i < cut.parts; ++i) {
    Piece& part = pieces[0];
    part = head;
    part.data = payload.data() + cut.first(i);
    part.bytes = cut.size(i);
    sound = stripes_[i]->send({&part, 1});
    note_flow(i);
  }
  if (!sound) mute();
}

bool Connection::flushed() const noexcept {
  return std::none_of(blocked_.begin(), blocked_.end(), [](std::uint8_t is) { return is != 0; });
}

void Connection::flush() noexcept {
  const ErrnoKept kept;
  for (std::size_t i = 0; i < stripes_.size(); ++i) {
    if (blocked_[i] == 0) continue;
    const bool sound = stripes_[i]->flush();
    note_flow(i);
    if (!sound) return mute();
  }
}

bool Connection::drained() const noexcept {
  if (mute_) return true;
  return flushed() && std::all_of(stripes_.begin(), stripes_.end(), [](const auto& stripe) {
           int bytes = 0;
           return ::ioctl(stripe->socket(), SIOCOUTQNSD, &bytes) != 0 || bytes == 0;
         });
}

void Connection::look(const TcpReceiver* wanted) noexcept {
  const ErrnoKept kept;
  if (!take_in(wanted)) readiness_.looked_in_vain();
}

bool Connection::take_in(const TcpReceiver* wanted) noexcept {
  bool came = go_through(wanted);
  bool more = true;
  for (int reads = 0; more && reads < most_reads && status_ == Status::ok; ++reads) {
    if (wanted != nullptr && wanted->has_message()) return true;
    came |= read_first(more);
    came |= go_through(wanted);
  }
  return came;
}

/// Goes through the frames that are there, and reads the parts that they announce.
bool Connection::go_through(const TcpReceiver* wanted) noexcept {
  if (!parse(wanted)) fail(Status::corrupt);
  bool came = false;
  for (std::size_t i = 1; i < stripes_.size() && parts_expected_ > 0; ++i) came |= read_part(i);
  return came;
}

/// What there is of the first stripe; `more`: perhaps not all of it.
bool Connection::read_first(bool& more) noexcept {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  const std::span<std::byte> room = std::span(buffer_).subspan(end_);
  const std::span<std::byte> landing(landing_.to, landing_.left);
  const Passed passed =
      landing.empty() ? stripes_[0]->receive(room, {}) : stripes_[0]->receive(landing, room);
  // Parts that the peer sent before it hung up may still be on their way.
  if (passed.broken && (landing_.left > 0 || parts_expected_ == 0)) fail(Status::closed);
  more = passed.bytes == landing.size() + room.size();
  if (passed.bytes == 0) return false;
  const std::size_t landed = std::min(passed.bytes, landing.size());
  if (landed > 0) land(landing_, landed);
  end_ += passed.bytes - landed;
  return true;
}

/// What there is of the parts that are expected of a stripe.
bool Connection::read_part(std::size_t stripe) noexcept {
  Ring<Landing>& expected = expected_[stripe];
  bool came = false;
  while (!expected.empty()) {
    Landing& landing = expected.front();
    const Passed passed = stripes_[stripe]->receive({landing.to, landing.left}, {});
    if (passed.broken) fail(Status::closed);
    if (passed.bytes == 0) break;
    came = true;
    land(landing, passed.bytes);
    if (landing.left > 0) break;
    expected.pop();
    --parts_expected_;
  }
  return came;
}

void Connection::land(Landing& landing, std::size_t bytes) noexcept {
  landing.to += bytes;
  landing.left -= bytes;
  if (landing.left == 0) landing.receiver->part_landed(landing.number);
}

/// Goes through the frames in the buffer. It stops at the next message of `wanted`: perhaps the
/// payload of the one after is wanted somewhere.
bool Connection::parse(const TcpReceiver* wanted) noexcept {
  while (landing_.left == 0 && end_ - begin_ >= sizeof(Header)) {
    if (wanted != nullptr && wanted->has_message()) return true;
    Header frame;
    std::memcpy(&frame, buffer_.data() + begin_, sizeof frame);
    begin_ += sizeof frame;
    if (!frame.plausible() || !take(frame)) return false;
    if (landing_.left > 0) take_buffered_payload();
  }
  return true;
}

void Connection::take_buffered_payload() noexcept {
  const std::size_t bytes = std::min(landing_.left, end_ - begin_);
  if (bytes == 0) return;
  std::memcpy(landing_.to, buffer_.data() + begin_, bytes);
  begin_ += bytes;
  land(landing_, bytes);
}

bool Connection::take(const Header& frame) noexcept {
  TcpSender* const sender = senders_[frame.index];
  switch (frame.kind) {
    case FrameKind::data:
    case FrameKind::put:
      return take_message(frame);
    case FrameKind::credit:
      return sender != nullptr && sender->take_releases(frame.releases);
    case FrameKind::offer:
      return sender != nullptr && sender->take_offer(frame.bytes);
    case FrameKind::open:
      return take_open(frame);
    case FrameKind::attach:
      if (attached_[frame.index]) return false;
      attached_[frame.index] = true;
      if (receivers_[frame.index] != nullptr) receivers_[frame.index]->take_attach();
      return true;
  }
  return false;
}

bool Connection::take_open(const Header& frame) noexcept {
  ChannelShape& opened = opened_[frame.index];
  if (opened.slots != 0 || frame.number == 0 || frame.number > max_slots ||
      frame.bytes > max_slot_bytes)
    return false;
  opened = {.slots = frame.number, .slot_bytes = static_cast<std::uint32_t>(frame.bytes)};
  if (senders_[frame.index] != nullptr) senders_[frame.index]->take_open(opened);
  return true;
}

bool Connection::take_message(const Header& frame) noexcept {
  TcpReceiver* const receiver = receivers_[frame.index];
  TcpSender* const sender = senders_[frame.index];
  if (receiver == nullptr || frame.bytes > max_slot_bytes) return false;
  // Without a sender here nothing was sent that could have been released there.
  if (sender != nullptr ? !sender->take_releases(frame.releases) : frame.releases != 0)
    return false;
  const Cut cut(frame.bytes, stripes_.size());
  std::byte* to = nullptr;
  if (!receiver->begin(frame, cut.parts, to)) return false;
  for (std::size_t i = 0; i < cut.parts; ++i) {
    Landing* const landing = i == 0 ? &landing_ : expected_[i].push();
    if (landing == nullptr) return false;
    *landing = {to + cut.first(i), cut.size(i), receiver, receiver->arrived()};
    if (i > 0) ++parts_expected_;
  }
  return true;
}

}  // namespace khoro::tcp
