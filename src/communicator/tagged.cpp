// SPDX-License-Identifier: Apache-2.0
// Sends and receives with tags: how they begin, go on and fail.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "base/thread.h"
#include "communicator/communicator.h"

namespace khoro {
namespace {

bool sends(const Operation& operation) noexcept {
  return operation.call.signature.kind == CallKind::send;
}

/// As a peer would see the send or receive in the records.
CallRecord call_of(const Announcement& message, CallKind kind, int peer) noexcept {
  CallRecord record;
  record.number = message.number;
  record.signature = {kind, message.dtype, Reduction::sum, peer, message.count};
  record.tag = message.tag;
  return record;
}

/// A send with a tag to `receiver` is under way.
bool sends_with_tag(const RankPage& page, int receiver) {
  const std::vector<CallRecord> calls = page.under_way().calls;
  return std::any_of(calls.begin(), calls.end(), [receiver](const CallRecord& call) {
    return call.tag != 0 && call.signature.kind == CallKind::send &&
           call.signature.peer == receiver;
  });
}

}  // namespace

TagChannel Communicator::open_tag_channel(int peer, bool sends) {
  const std::uint64_t from = sends ? rank() : peer;
  const std::uint64_t to = sends ? peer : rank();
  return {plans_.make_port(peer, sends, tagged_messages),
          plans_.make_port(peer, sends, tagged_messages),
          combine(combine(identity_, from << 32 | to), hash_text("tags"))};
}

Mailbox& Communicator::mailbox(int peer) {
  auto& mailbox = mailboxes_[peer];
  if (!mailbox) mailbox = std::make_unique<Mailbox>();
  return *mailbox;
}

Outbox& Communicator::outbox(int peer) {
  auto& outbox = mailbox(peer).outbox;
  if (!outbox) outbox = std::make_unique<Outbox>(open_tag_channel(peer, true));
  return *outbox;
}

Inbox& Communicator::inbox(int peer) {
  auto& inbox = mailbox(peer).inbox;
  if (!inbox)
    inbox = std::make_unique<Inbox>(open_tag_channel(peer, false), tag_buffer_, kept_bytes_);
  return *inbox;
}

void Communicator::begin_tagged(Operation& operation) {
  const Signature& signature = operation.call.signature;
  const std::uint32_t tag = operation.call.tag;
  Mailbox& mailbox = this->mailbox(signature.peer);
  operation.number = (sends(operation) ? mailbox.sent : mailbox.received).next(tag);
  tag_under_way_.store(tag, std::memory_order_relaxed);
  // Pairs with cause_now().
  under_way_.store(static_cast<std::uint64_t>(signature.kind) | has_tag | operation.number << 8,
                   std::memory_order_release);
  thread_ = line_ != 0 ? line_ : current_thread();
  operation.place =
      page_->begin_message({operation.number, signature, 0, thread_, CallState::under_way, tag});
  if (open_ == 1) page_->older_messages_ended();
  const Announcement message{operation.number, signature.count, tag, signature.dtype, {}};
  if (sends(operation)) return outbox(signature.peer).start(message, operation.call.buffers.input);
  operation.receipt = {message, operation.call.buffers.output, false};
  inbox(signature.peer).post(operation.receipt);
}

Progress Communicator::advance_apart(Operation& operation) noexcept {
  if (operation.call.tag != 0) return advance_tagged(operation);
  return near_slowest(operation.number) ? Progress::done : Progress::waiting;
}

Progress Communicator::advance_tagged(Operation& operation) noexcept {
  if (!sends(operation)) {
    if (operation.receipt.done) return Progress::done;
    const Progress progress = pump(operation);
    return operation.receipt.done && progress != Progress::failed ? Progress::done : progress;
  }
  Mailbox& mailbox = *mailboxes_[operation.call.signature.peer];
  const Progress progress = mailbox.outbox->advance();
  tags_moved_ |= progress != Progress::waiting;
  if (progress == Progress::failed) fail_tagged(operation, mailbox.outbox->fault());
  // The peer may wait for room at this end before it goes on.
  return progress == Progress::waiting && mailbox.inbox ? pump(operation) : progress;
}

Progress Communicator::pump(const Operation& operation) noexcept {
  Inbox& inbox = *mailboxes_[operation.call.signature.peer]->inbox;
  const Progress progress = inbox.pump();
  tags_moved_ |= progress != Progress::waiting;
  if (progress == Progress::failed) fail_tagged(operation, inbox.fault());
  return progress;
}

/// Takes in what the peers send for which operations wait that have nothing to do with tags.
bool Communicator::pump_beside(std::span<Operation* const> operations) noexcept {
  pumped_ = false;
  for (const Operation* operation : operations) {
    if (!operation->call.signature.point_to_point() || operation->call.tag != 0) continue;
    const auto& mailbox = mailboxes_[operation->call.signature.peer];
    if (!mailbox || !mailbox->inbox) continue;
    const Progress progress = pump(*operation);
    if (progress == Progress::failed) return false;
    pumped_ |= progress == Progress::moved;
  }
  return true;
}

/// A program without tags opens no inbox; one that waits for a peer that sends with tags does.
void Communicator::open_inboxes(std::span<Operation* const> operations) {
  for (const Operation* operation : operations) {
    const Signature& signature = operation->call.signature;
    if (!signature.point_to_point()) continue;
    const auto& mailbox = mailboxes_[signature.peer];
    if (mailbox && mailbox->inbox) continue;
    if (sends_with_tag(peers_->page(signature.peer), rank())) inbox(signature.peer);
  }
}

bool Communicator::is_held_back(const Operation& operation,
                                std::span<Operation* const> operations) {
  if (operation.call.tag == 0 || sends(operation) || operation.receipt.done) return false;
  const int peer = operation.call.signature.peer;
  const Announcement* const first = mailboxes_[peer]->inbox->held_back();
  if (!first) return false;
  // The receive that it lacks may come right after one with its tag that has just got its message.
  for (const Operation* other : operations)
    if (other->call.tag == first->tag && other->call.signature.peer == peer && !sends(*other) &&
        other->receipt.done)
      return false;
  const HeldBack held_back{rank(), record_of(operation), call_of(*first, CallKind::recv, peer)};
  page_->hold_back(held_back.lacked);  // every rank says what this one says
  poison({Code::mismatch, rank(), CallKind::recv, operation.number, operation.call.tag},
         describe(held_back));
  return true;
}

void Communicator::fail_tagged(const Operation& operation, Code fault) noexcept {
  if (hear()) return;
  const int peer = operation.call.signature.peer;
  const Cause cause{fault, fault == Code::out_of_memory ? rank() : peer,
                    operation.call.signature.kind, operation.number, operation.call.tag};
  try {
    if (fault == Code::mismatch) {
      const auto& clash = *mailboxes_[peer]->inbox->clash();
      return poison(unequal_ends(call_of(clash.sent, CallKind::send, rank()),
                                 call_of(clash.wanted, CallKind::recv, peer)));
    }
  } catch (const std::bad_alloc&) {
    // It says less.
  }
  if (fault != Code::out_of_memory && fault != Code::remote_error) return poison(cause);
  poison(cause, worded([&] {
           const std::string call =
               title(operation.call.signature, operation.number, operation.call.tag);
           if (fault == Code::out_of_memory)
             return fmt::format(
                 "{}: no memory left to keep what {} sends; receive it earlier, or "
                 "set a lower KHORO_TAG_BUFFER",
                 call, peers_->who(peer));
           return words_of_damage(call, peers_->who(peer));
         }));
}

}  // namespace khoro
