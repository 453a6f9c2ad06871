// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "device/fold.h"
#include "executor/call_shape.h"
#include "executor/execution.h"
#include "executor/lane_state.h"
#include "executor/loans.h"
#include "executor/local_blocks.h"
#include "executor/scratch.h"

namespace khoro {

/// The interpreter's world on the host: channels are Sender and Receiver, arithmetic is the vector
/// kernels. Thread-compatible; an operation begins with start(). See interpreter.h for what the
/// functions mean.
class HostEngine {
 public:
  /// Borrows `image` and `ends`. Throws `Error`.
  HostEngine(const Image& image, const Collective& collective, Ends& ends,
             const ExecutionOptions& options);

  /// May throw out_of_memory for scratch.
  void start(const CallArguments& call);
  /// True when every reference is back, and nothing that was sent waits in this process.
  bool all_returned() noexcept;
  /// A peer for which that is not so; -1: none.
  int owing_peer() const noexcept;

  const Stage& stage(std::uint32_t i) const noexcept { return image_.stages[i]; }
  std::uint32_t port_of(std::uint32_t stage) const noexcept { return image_.port_of_stage[stage]; }
  std::uint64_t tiles() const noexcept { return tiles_; }
  static constexpr std::uint64_t stride() noexcept { return 1; }
  std::uint32_t ranks() const noexcept { return static_cast<std::uint32_t>(collective_.ranks); }
  std::uint32_t digest(std::uint32_t port) const noexcept { return digest_ ^ local_.salts[port]; }
  /// Where blocks are local, both ends of a channel know when they are through with theirs.
  bool skips(std::uint32_t stage, std::uint64_t tile) const noexcept {
    return local_blocks_ && tile >= local_.tiles_of_stage[stage];
  }
  void fail(Status status) noexcept { status_ = status; }
  Status status() const noexcept { return status_; }

  unsigned shift(Form form) const noexcept { return shift_[static_cast<std::size_t>(form)]; }
  Form carry_form() const noexcept { return carry_form_; }
  std::uint64_t room() const noexcept { return room_; }

  void piece(Run& run, std::uint32_t stage, Buffer buffer, std::int32_t chunk,
             std::uint64_t tile) noexcept {
    run.tile = tile;
    run.buffer = buffer;
    run.next = run.last = chunk + 1;
    if (buffer == Buffer::scratch) return place_scratch(run, chunk);
    Known& known = known_[stage];
    if (known.shape != shape_ || known.tile != tile) look_up(known, buffer, chunk, tile);
    run.data = base(buffer) + known.offset;
    run.left = known.elements;
    run.form = Form::dtype;
  }
  void next_piece(Run& run) const noexcept;
  std::uint64_t length(std::int32_t chunk, std::uint64_t tile) const noexcept {
    return grid_.piece(Buffer::output, chunk % image_.chunks, tile).count;
  }
  void hold(std::int32_t chunk, std::uint64_t elements, Form form) noexcept {
    held_[static_cast<std::size_t>(chunk)] = {elements, form, true};
  }
  bool holds(std::int32_t first, std::int32_t last) const noexcept {
    for (std::int32_t chunk = first; chunk < last; ++chunk)
      if (!held_[static_cast<std::size_t>(chunk)].written) return false;
    return true;
  }

  bool take_token(int token) noexcept {
#ifdef KHORO_TEST_SWITCHES
    if (ignores_tokens_) return true;
#endif
    int& count = tokens_[static_cast<std::size_t>(token)];
    if (count == 0) return false;
    --count;
    return true;
  }
  void give_token(int token) noexcept { ++tokens_[static_cast<std::size_t>(token)]; }

  bool lands(std::uint32_t stage) const noexcept { return lands_[stage] != 0; }
  void aim(std::uint32_t port, std::byte* data, std::uint64_t bytes) noexcept {
    receivers_[port]->aim({digest(port), bytes, Form::dtype}, data);
  }
  Observed observe(std::uint32_t port) noexcept {
    return receivers_[port]->try_observe(digest(port));
  }
  bool intact(std::uint32_t port) noexcept { return receivers_[port]->intact(); }
  void release(std::uint32_t port) noexcept { receivers_[port]->release(); }
  std::byte* acquire(std::uint32_t port, std::uint64_t bytes) noexcept {
    return senders_[port]->try_acquire(bytes);
  }
  std::uint64_t payload_limit(std::uint32_t port) const noexcept { return limits_[port]; }
  void publish(std::uint32_t port, const MessageHead& head) noexcept {
    senders_[port]->publish(head);
  }
  const Window* window(std::uint32_t port) noexcept { return senders_[port]->try_window(); }
  void publish_put(std::uint32_t port, const MessageHead& head) noexcept {
    senders_[port]->publish_put(head);
  }

  bool offer(std::uint32_t port, Window window, std::uint32_t stage, std::uint64_t tile) noexcept;
  OfferedWindow oldest_window(std::uint32_t port) const noexcept;
  void window_taken(std::uint32_t port) noexcept { ++windows_[port].taken; }

  /// Whether references to a buffer are to the caller's liking and the plan's.
  bool lends_from(const Stage& stage) const noexcept {
    return stage.buffer != Buffer::input || lends_input_;
  }
  bool lends() const noexcept { return loans_.count() > 0; }
  bool lent(const std::byte* data, std::uint64_t bytes) noexcept;
  bool may_lend(std::uint32_t port, const Move& move, std::uint64_t bytes) noexcept;
  void lend(std::uint32_t port, const MessageHead& head, const std::byte* data) noexcept;

  /// Elements of a step with several sinks that a member does at a time: so few that they stay in
  /// the first-level cache.
  std::uint64_t grain() const noexcept {
    constexpr std::uint64_t cached_bytes = 8192;
    return cached_bytes >> shift_[0];
  }
  void fold(std::byte* to, Form form, const Operand* operands, std::uint32_t operand_count,
            std::uint64_t first, std::uint64_t elements, std::uint32_t divisor) const noexcept {
    fold_(to, form, operands, operand_count, first, elements, divisor, own_);
  }

 private:
  /// Where a stage's piece was when it was looked up last.
  struct Known {
    std::uint64_t offset = 0;  // bytes
    std::uint64_t elements = 0;
    std::uint64_t shape = 0;
    std::uint64_t tile = 0;
  };
  struct Windows {
    static constexpr std::size_t most = 64;  // open at once; a channel has no more slots
    std::vector<OfferedWindow> ring;         // empty unless the port offers
    std::uint64_t offered = 0;
    std::uint64_t taken = 0;
  };

  void open(Ends& ends);
  bool only_copies(std::size_t stage) const noexcept;
  void choose_what_to_lend() noexcept;
  bool has_whole_pages(const Window& window) const noexcept;
  void reshape(const CallArguments& call);
  std::uint64_t longest_message() const noexcept;
  void take_back_loans() noexcept {
    loans_.take_back(
        [this](const Loan& loan) { return senders_[loan.port]->returned() >= loan.number; });
  }
  bool has_room_for_loan() noexcept {
    if (loans_.count() >= most_loans_) take_back_loans();
    return loans_.count() < most_loans_;
  }

  std::byte* base(Buffer buffer) const noexcept {
    // Inputs are read alone: programs that write them are refused when an execution is made.
    return buffer == Buffer::input ? const_cast<std::byte*>(buffers_.input) : buffers_.output;
  }
  void look_up(Known& known, Buffer buffer, std::int32_t chunk, std::uint64_t tile) const noexcept;
  void place_scratch(Run& run, std::int32_t chunk) const noexcept {
    const auto i = static_cast<std::size_t>(chunk);
    run.data = scratch_ + i * scratch_stride_;
    run.left = held_[i].elements;
    run.form = held_[i].form;
  }

  const Image& image_;
  Collective collective_;
  std::vector<Sender*> senders_;      // by port; null where the port receives
  std::vector<Receiver*> receivers_;  // by port; null where the port sends
  std::vector<Sender*> queueing_;     // those of which messages may wait in this process
  std::vector<std::uint64_t> limits_;
  std::vector<std::uint8_t> lands_;  // by stage
  std::vector<Windows> windows_;
  std::vector<int> tokens_;
  std::uint64_t least_limit_ = 0;
  std::uint64_t short_bytes_ = 0;
  LendingRule rule_;
  Partials partials_ = Partials::dtype;
  bool passes_empty_ = false;
#ifdef KHORO_TEST_SWITCHES
  bool ignores_tokens_ = false;
#endif

  // Of the call, and of those before it that were alike.
  CallBuffers buffers_;
  std::uint32_t digest_ = 0;
  Status status_ = Status::ok;
  bool lends_input_ = false;
  bool lends_results_ = false;  // to be read in place
  bool lends_to_kernel_ = false;
  std::uint64_t shape_ = 0;  // counts how often the three below changed
  std::size_t count_ = 0;
  Dtype dtype_ = Dtype::f32;
  Reduction reduction_ = Reduction::sum;
  const Blocks* blocks_ = nullptr;
  BufferBytes bytes_;
  Grid grid_;
  std::uint64_t tiles_ = 0;
  bool local_blocks_ = false;
  LocalBlocks local_;  // salts are 0 but where blocks are local
  unsigned shift_[2] = {0, 0};
  Form carry_form_ = Form::dtype;
  Fold fold_ = nullptr;
  OwnFold own_;
  std::uint64_t room_ = 0;
  std::vector<Known> known_;

  std::unique_ptr<Scratch> own_scratch_;  // null if it is shared
  Scratch* scratch_memory_;
  std::size_t scratch_bytes_ = 0;  // that the call needs
  std::byte* scratch_ = nullptr;
  std::size_t scratch_stride_ = 0;
  std::vector<Held> held_;

  // Between may_lend() and lend() others may lend, once through each port, so there is room for
  // more than may_lend() gives away.
  std::size_t most_loans_ = 0;
  Loans<std::vector<Loan>> loans_;
};

}  // namespace khoro
