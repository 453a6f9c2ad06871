// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "communicator/receipt.h"
#include "executor/execution.h"

namespace khoro {

/// One end of the channel that all messages with tags from one rank to another share.
struct TagChannel {
  std::unique_ptr<Execution> announcements;
  std::unique_ptr<Execution> data;
  std::uint64_t digest_base = 0;
  std::uint64_t messages = 0;  // begun

  void announce(const CallBuffers& buffers);
  void pass(const Announcement& announced, const CallBuffers& buffers);
  /// After a part has failed: what that means.
  Code fault() const noexcept;
};

/// The sending end. One message at a time.
class Outbox {
 public:
  explicit Outbox(TagChannel channel) : channel_(std::move(channel)) {}

  /// Begins a message; the one before must be done. `data` is borrowed until it is. May throw
  /// out_of_memory.
  void start(const Announcement& message, const std::byte* data);
  Progress advance() noexcept;
  /// After `failed`: as of an inbox.
  Code fault() const noexcept { return channel_.fault(); }

 private:
  TagChannel channel_;
  Announcement message_{};
  bool announced_ = false;
};

/// The receiving end, which takes in messages in the order in which they were sent: into the buffer
/// of the first receive with the tag, or else into memory of its own, up to a limit. At the limit
/// it takes in nothing more until a receive comes. Thread-compatible; allocates by message.
class Inbox {
 public:
  /// What a message in memory counts beside its data, so that empty ones are bounded too.
  static constexpr std::uint64_t bookkeeping = 128;

  /// `limit` is in bytes. What is kept is added to `total`, which is borrowed.
  Inbox(TagChannel channel, std::uint64_t limit, std::atomic<std::uint64_t>& total);

  /// Adds a receive, whose message may be there already: then it is done. Receives with one tag get
  /// their messages in the order of their posts. Throws out_of_memory.
  void post(Receipt& receipt);
  /// Takes in what has come, a bounded part of it. After `failed` the inbox is not used any more.
  Progress pump() noexcept;

  /// The message that has come and has neither a receive nor room.
  const Announcement* held_back() const noexcept {
    return state_ == State::holds_back ? &announced_ : nullptr;
  }

  // After `failed`.

  /// out_of_memory, mismatch, peer_died, or remote_error: what came is nothing that a correct rank
  /// sends.
  Code fault() const noexcept { return fault_; }
  /// Of a mismatch: the two ends that differ.
  struct Clash {
    Announcement sent;
    Announcement wanted;
  };
  const std::optional<Clash>& clash() const noexcept { return clash_; }

 private:
  enum class State : std::uint8_t { listens, takes_in, holds_back };
  /// A message in memory of the inbox.
  struct Kept {
    Announcement message;
    std::unique_ptr<std::byte[]> data;
  };
  struct Posted {
    std::uint32_t tag = 0;
    Receipt* receipt = nullptr;
  };

  void listen();
  Progress step();
  bool meet(const Announcement& sent, const Announcement& wanted) noexcept;
  Receipt* take_posted(std::uint32_t tag) noexcept;
  bool find_place();
  bool find_room();
  void deliver();
  void hand_over(Kept& kept, Receipt& receipt) noexcept;
  void count_kept(std::uint64_t cost) noexcept;
  static std::uint64_t cost_of(const Announcement& message) noexcept;

  TagChannel channel_;
  const std::uint64_t limit_;
  std::atomic<std::uint64_t>& total_;  // of all inboxes, for who reads statistics
  State state_ = State::listens;
  Announcement announced_{};
  Receipt* receipt_ = nullptr;  // of the message that is taken in; null: it is kept
  Kept incoming_{};
  std::multimap<std::uint32_t, Kept> kept_;  // by tag, those with one tag in order
  std::uint64_t kept_cost_ = 0;
  std::vector<Posted> posted_;
  Code fault_ = Code::success;
  std::optional<Clash> clash_;
};

/// Counts messages by their tags, for reports. It remembers so many tags; when there are more it
/// forgets them all, and every tag goes on from the highest number so far. So the two ends of a
/// message may differ in its number, which therefore decides nothing.
class TagCounts {
 public:
  static constexpr std::size_t most = 1'024;

  std::uint64_t next(std::uint32_t tag);

 private:
  std::unordered_map<std::uint32_t, std::uint64_t> counts_;
  std::uint64_t highest_ = 0;
  std::uint64_t forgotten_ = 0;  // the highest when they were forgotten
};

/// All that one rank has to do with messages with tags of one peer. Made on first use.
struct Mailbox {
  std::unique_ptr<Outbox> outbox;
  std::unique_ptr<Inbox> inbox;
  TagCounts sent;
  TagCounts received;
};

}  // namespace khoro
