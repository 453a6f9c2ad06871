// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"
#include "base/status.h"

namespace khoro {

/// What a message's header says beside its number and digest.
struct MessageHead {
  std::uint32_t digest = 0;  // of (communicator, epoch, operation, call, plan)
  std::uint64_t bytes = 0;   // of the payload
  Form form = Form::dtype;
};

/// A message as its receiver sees it.
struct Message {
  MessageHead head;
  const std::byte* data = nullptr;  // null if the payload is empty
  bool by_reference = false;        // data lies in no slot, but in memory of who lent or named it
};

/// The answer to "is the next message there?".
struct Observed {
  Status status = Status::ok;
  const Message* message = nullptr;  // null: not there yet (or the status says why never)
};

/// A place for data that one side lends to the other.
struct Window {
  std::byte* data =
      nullptr;  // null at the sender: not reachable from there, a slot is used instead
  std::uint64_t bytes = 0;
  /// The pages that it touches hold nothing but what the operation may overwrite, so that they can
  /// be taken from a peer that might write to them too late.
  bool whole_pages = false;
};

/// How a peer gets what lies in some memory of the sender's, other than by a slot.
enum class Lending : std::uint8_t {
  none,
  in_place,  // the receiver reads it where it lies
  fetched,   // the receiver has the kernel copy it
  sent,      // it is sent from where it lies
};

/// The sending end of a channel: a one-way, in-order pipe from a lane of one rank to a lane of
/// another, with D slots. Messages are numbered from 1 and never reordered. Thread-compatible: one
/// lane owns an end. Nothing here blocks, allocates or throws.
class Sender {
 public:
  virtual ~Sender() = default;

  /// Room for the payload of the next message, or null while all D slots are in use or the other
  /// end is not open yet. Asking again before publish() gives the same room. `bytes` is at most
  /// payload_limit().
  virtual std::byte* try_acquire(std::size_t bytes) noexcept = 0;
  /// Makes the acquired message visible and rings the receiver's doorbell if it sleeps. The payload
  /// is head.bytes from the room that try_acquire gave.
  virtual void publish(const MessageHead& head) noexcept = 0;
  /// The slot_bytes of the channel's shape.
  virtual std::size_t payload_limit() const noexcept = 0;
  /// Has all D slots used for messages that are not small (see ChannelShape), from now on. Before
  /// that some transports save memory, and have less room for those, but for two.
  virtual void use_all_slots() noexcept {}

  /// What publish_reference would do with this memory; it is allowed unless that is none.
  virtual Lending lending(const std::byte* data, std::uint64_t bytes) noexcept = 0;
  /// Publishes the acquired message (room may be unused) as a reference: `data` stays untouched by
  /// its owner until returned() has reached the message's number.
  virtual void publish_reference(const MessageHead& head, const std::byte* data) noexcept = 0;
  /// How many messages were published, and how many of them the receiver is known to have released.
  /// The release of a reference or a put is told at once, that of others perhaps with a later one;
  /// never so late that a sender with fewer than D unreleased messages lacks a slot.
  virtual std::uint64_t published() const noexcept = 0;
  virtual std::uint64_t released() noexcept = 0;
  /// Messages up to this number do not use memory that was lent for them any more.
  virtual std::uint64_t returned() noexcept { return released(); }

  /// True if what is published may stay in this process until this end is asked again. Then an
  /// operation does not end before flushed() says that nothing does.
  virtual bool queues() const noexcept { return false; }
  virtual bool flushed() noexcept { return true; }

  /// The oldest window that the receiver has offered and this end has not filled, or null.
  virtual const Window* try_window() noexcept = 0;
  /// Reports the window of try_window() as filled: head.bytes lie in the window, or in the acquired
  /// room if the window has no data. It counts as a message of the channel, in order with the
  /// others, and needs an acquired slot even if the room is not used.
  virtual void publish_put(const MessageHead& head) noexcept = 0;

  /// An error seen by this end alone (a peer that is gone); ok while all is well.
  virtual Status status() const noexcept = 0;
};

/// The receiving end. Same rules as Sender.
class Receiver {
 public:
  virtual ~Receiver() = default;

  /// The oldest message not yet released. Number differs: not there yet. Number equal and digest
  /// other than `digest`: mismatch.
  virtual Observed try_observe(std::uint32_t digest) noexcept = 0;
  /// Whether the message that is observed is still what was sent. Asked after a message that is
  /// by_reference was read, and before anything that follows from it is shown to anyone. False: who
  /// lent it has failed and has taken it back, which is the news to wait for.
  virtual bool intact() noexcept { return true; }
  /// Gives the observed message's slot, or the sender's memory, back.
  virtual void release() noexcept = 0;

  /// True if aim() does something.
  virtual bool aims() const noexcept { return false; }
  /// Names memory for the payload of the message that is observed next, if it has that digest, size
  /// and Form::dtype; any other, and one that has come already, comes as always. It holds for one
  /// message, which may be written there from now until it is observed.
  virtual void aim(const MessageHead& /*expected*/, std::byte* /*data*/) noexcept {}
  /// The same as the sender's.
  virtual std::size_t payload_limit() const noexcept = 0;

  /// Lends a window to the sender; false while D are open. The window is untouchable until the
  /// message that fills it is observed, and open until that message is released. If the message is
  /// by_reference its data is the window's and lies in place already, else it must be copied from
  /// the slot.
  virtual bool try_offer(const Window& window) noexcept = 0;
};

}  // namespace khoro
