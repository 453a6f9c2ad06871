// SPDX-License-Identifier: Apache-2.0
#include "communicator/mailbox.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/hash.h"

namespace khoro {
namespace {

constexpr std::uint64_t announcement_words = sizeof(Announcement) / sizeof(std::uint64_t);

std::uint64_t bytes_of(const Announcement& message) noexcept {
  return message.count * find(message.dtype)->bytes;
}

CallArguments arguments(const CallBuffers& buffers, std::uint64_t count, Dtype dtype,
                        std::uint64_t digest) noexcept {
  return {buffers, count, dtype, Reduction::sum, static_cast<std::uint32_t>(digest)};
}

}  // namespace

void TagChannel::announce(const CallBuffers& buffers) {
  announcements->start(
      arguments(buffers, announcement_words, Dtype::u64, combine(digest_base, ++messages)));
}

void TagChannel::pass(const Announcement& announced, const CallBuffers& buffers) {
  const std::uint64_t named =
      combine(std::uint64_t{announced.tag} << 8 | static_cast<std::uint64_t>(announced.dtype),
              announced.count);
  data->start(arguments(buffers, announced.count, announced.dtype,
                        combine(combine(digest_base, messages), named)));
}

Code TagChannel::fault() const noexcept {
  const bool gone = announcements->status() == Status::closed || data->status() == Status::closed;
  return gone ? Code::peer_died : Code::remote_error;
}

void Outbox::start(const Announcement& message, const std::byte* data) {
  message_ = message;
  announced_ = false;
  channel_.announce({reinterpret_cast<const std::byte*>(&message_), nullptr});
  if (message.count > 0) channel_.pass(message, {data, nullptr});
}

Progress Outbox::advance() noexcept {
  bool moved = false;
  if (!announced_) {
    const Progress progress = channel_.announcements->advance();
    if (progress != Progress::done) return progress;
    announced_ = moved = true;
  }
  if (message_.count == 0) return Progress::done;
  const Progress progress = channel_.data->advance();
  return moved && progress == Progress::waiting ? Progress::moved : progress;
}

Inbox::Inbox(TagChannel channel, std::uint64_t limit, std::atomic<std::uint64_t>& total)
    : channel_(std::move(channel)), limit_(limit), total_(total) {
  listen();
}

void Inbox::listen() {
  state_ = State::listens;
  channel_.announce({nullptr, reinterpret_cast<std::byte*>(&announced_)});
}

void Inbox::post(Receipt& receipt) {
  receipt.done = false;
  const std::uint32_t tag = receipt.wanted.tag;
  const auto kept = kept_.lower_bound(tag);
  if (kept == kept_.end() || kept->first != tag) return posted_.push_back({tag, &receipt});
  if (!meet(kept->second.message, receipt.wanted)) return;  // pump() tells
  hand_over(kept->second, receipt);
  kept_.erase(kept);
}

Progress Inbox::pump() noexcept {
  if (fault_ != Code::success) return Progress::failed;
  try {
    const Progress progress = step();
    if (progress == Progress::failed && fault_ == Code::success) fault_ = channel_.fault();
    return progress;
  } catch (const Error& error) {
    fault_ = error.code();
  } catch (const std::bad_alloc&) {
    fault_ = Code::out_of_memory;
  }
  return Progress::failed;
}

Progress Inbox::step() {
  if (state_ == State::holds_back) {
    if (!find_place()) return Progress::waiting;
  } else {
    Execution& part = state_ == State::listens ? *channel_.announcements : *channel_.data;
    const Progress progress = part.advance();
    if (progress != Progress::done) return progress;
    if (state_ == State::takes_in) {
      deliver();
    } else {
      if (announced_.tag == 0 || !find(announced_.dtype)) return Progress::failed;
      if (!find_place()) state_ = State::holds_back;
    }
  }
  return fault_ == Code::success ? Progress::moved : Progress::failed;
}

bool Inbox::meet(const Announcement& sent, const Announcement& wanted) noexcept {
  if (sent.count == wanted.count && sent.dtype == wanted.dtype) return true;
  fault_ = Code::mismatch;
  clash_ = {sent, wanted};
  return false;
}

Receipt* Inbox::take_posted(std::uint32_t tag) noexcept {
  const auto first = std::find_if(posted_.begin(), posted_.end(),
                                  [tag](const Posted& each) { return each.tag == tag; });
  if (first == posted_.end()) return nullptr;
  Receipt* const receipt = first->receipt;
  posted_.erase(first);
  return receipt;
}

/// Begins to take in the message that was announced, to where it belongs. False if it must wait.
bool Inbox::find_place() {
  receipt_ = take_posted(announced_.tag);
  if (receipt_ && !meet(announced_, receipt_->wanted)) return true;
  if (!receipt_ && !find_room()) return false;
  state_ = State::takes_in;
  if (announced_.count == 0)
    deliver();
  else
    channel_.pass(announced_, {nullptr, receipt_ ? receipt_->buffer : incoming_.data.get()});
  return true;
}

/// The count is not to be believed: it is compared with the limit before anything is made of it.
bool Inbox::find_room() {
  const std::uint64_t free = limit_ - kept_cost_;
  if (free < bookkeeping || announced_.count > (free - bookkeeping) / find(announced_.dtype)->bytes)
    return false;
  incoming_ = {announced_, nullptr};
  if (announced_.count > 0) {
    // Not by what throws itself: sanitizers end the process there.
    incoming_.data.reset(new (std::nothrow) std::byte[bytes_of(announced_)]);
    if (!incoming_.data) throw std::bad_alloc();
  }
  count_kept(kept_cost_ + cost_of(announced_));
  return true;
}

void Inbox::deliver() {
  if (receipt_)
    receipt_->done = true;
  else if (Receipt* const came_meanwhile = take_posted(announced_.tag)) {
    if (!meet(announced_, came_meanwhile->wanted)) return;
    hand_over(incoming_, *came_meanwhile);
  } else {
    kept_.emplace(announced_.tag, std::move(incoming_));
  }
  receipt_ = nullptr;
  listen();
}

void Inbox::hand_over(Kept& kept, Receipt& receipt) noexcept {
  if (kept.message.count > 0) std::memcpy(receipt.buffer, kept.data.get(), bytes_of(kept.message));
  kept.data.reset();
  count_kept(kept_cost_ - cost_of(kept.message));
  receipt.done = true;
}

void Inbox::count_kept(std::uint64_t cost) noexcept {
  total_.fetch_add(cost - kept_cost_, std::memory_order_relaxed);  // modulo 2^64, as it may be less
  kept_cost_ = cost;
}

std::uint64_t Inbox::cost_of(const Announcement& message) noexcept {
  return bookkeeping + bytes_of(message);
}

std::uint64_t TagCounts::next(std::uint32_t tag) {
  if (counts_.size() >= most && counts_.count(tag) == 0) {
    counts_.clear();
    forgotten_ = highest_;
  }
  std::uint64_t& count = counts_.try_emplace(tag, forgotten_).first->second;
  highest_ = std::max(highest_, ++count);
  return count;
}

}  // namespace khoro
