// SPDX-License-Identifier: Apache-2.0
#pragma once

// The interpreter's world in a kernel: channels are memory that is polled, arithmetic is a team's.
// See interpreter.h for what the functions mean. It lies in memory of the block.

#include "executor/gpu/call.h"
#include "executor/gpu/ends.h"
#include "executor/gpu/fold.h"
#include "executor/gpu/staging.h"
#include "executor/interpreter.h"
#include "executor/loans.h"

namespace khoro::gpu {

/// Whether the host wants the kernel of a call to end, or a lane of the rank has failed.
KHORO_HD inline bool is_stopped(const Call& call) noexcept {
  // Both are asked for before either is looked at: they are far away.
  const std::uint32_t stop = observe_alone(*call.stop);
  const std::uint32_t failure = observe_alone(call.report->failure);
  return (stop | failure) != 0;
}

class Engine {
 public:
  KHORO_HD Engine(const Call& call, std::uint32_t strand, std::byte* staging) noexcept
      : call_(call), strand_(call.program.strands[strand]), staging_(staging) {
    call_.scratch += strand * call.scratch_of_strand;
  }

  KHORO_HD const Stage& stage(std::uint32_t i) noexcept {
    const std::uint32_t at = i - window_first_;
    if (at >= window_most / 4 * 3) wanted_ = i;
    return at < window_most ? window_[at] : program().stages[i];
  }
  KHORO_HD std::uint32_t port_of(std::uint32_t stage) const noexcept {
    return program().port_of_stage[stage];
  }
  KHORO_HD std::uint64_t tiles() const noexcept { return call_.tiles; }
  KHORO_HD std::uint64_t stride() const noexcept { return program().strand_count; }
  KHORO_HD std::uint32_t ranks() const noexcept { return program().ranks; }
  KHORO_HD std::uint32_t digest(std::uint32_t port) const noexcept {
    return call_.salts == nullptr ? call_.digest : call_.digest ^ call_.salts[port];
  }
  KHORO_HD bool skips(std::uint32_t stage, std::uint64_t tile) const noexcept {
    return call_.tiles_of_stage != nullptr && tile >= call_.tiles_of_stage[stage];
  }
  KHORO_HD void fail(Status status) noexcept { status_ = status; }
  KHORO_HD Status status() const noexcept { return status_; }
  KHORO_HD bool stopped() const noexcept { return is_stopped(call_); }

  KHORO_HD unsigned shift(Form form) const noexcept { return call_.shifts[static_cast<int>(form)]; }
  KHORO_HD Form carry_form() const noexcept { return call_.carry_form; }
  KHORO_HD std::uint64_t room() const noexcept { return call_.room; }

  KHORO_HD void piece(Run& run, std::uint32_t, Buffer buffer, std::int32_t chunk,
                      std::uint64_t tile) const noexcept {
    run.tile = tile;
    run.buffer = buffer;
    run.next = run.last = chunk + 1;
    place(run, chunk);
  }
  KHORO_HD void next_piece(Run& run) const noexcept {
    const Form form = run.form;
    const std::int32_t chunk = run.next++;
    place(run, chunk);
    if (run.buffer != Buffer::scratch || !run.fresh) return;
    run.left = length(chunk, run.tile);
    run.form = form;
  }
  KHORO_HD std::uint64_t length(std::int32_t chunk, std::uint64_t tile) const noexcept {
    return call_.cuts.piece(Buffer::output, chunk % program().chunks, tile).count;
  }
  KHORO_HD void hold(std::int32_t chunk, std::uint64_t elements, Form form) noexcept {
    strand_.held[chunk] = {elements, form, true};
  }
  KHORO_HD bool holds(std::int32_t first, std::int32_t last) const noexcept {
    for (std::int32_t chunk = first; chunk < last; ++chunk)
      if (!strand_.held[chunk].written) return false;
    return true;
  }

  KHORO_HD bool take_token(int number) noexcept {
    Token& token = strand_.tokens[number];
    if (khoro::observe(token.given) == token.taken) return false;
    ++token.taken;
    return true;
  }
  KHORO_HD void give_token(int number) noexcept {
    Token& token = strand_.tokens[number];
    khoro::publish(token.given, token.given + 1);
  }

  KHORO_HD bool lands(std::uint32_t) const noexcept { return false; }
  KHORO_HD void aim(std::uint32_t, std::byte*, std::uint64_t) noexcept {}
  KHORO_HD Observed observe(std::uint32_t port) noexcept {
    End& from = end(port);
    const std::uint32_t expected = digest(port);
    const Arrival arrival = look_at(from, expected);
    if (arrival != Arrival::there) return {status_of(arrival), nullptr};
    if (from.flagged) {
      staging_.take(from);
      if (from.room == nullptr) from.room = from.body(from.number + 1);
      ++arriving_;
    }
    message_.head = {expected, from.bytes, from.form};
    message_.data = from.bytes > 0 ? from.room : nullptr;
    message_.by_reference = from.elsewhere;
    return {Status::ok, &message_};
  }
  KHORO_HD bool intact(std::uint32_t) const noexcept { return true; }
  KHORO_HD void release(std::uint32_t port) noexcept {
    End& from = end(port);
    if (from.flagged) --arriving_;
    staging_.give_back(from);
    khoro::publish(*from.released, ++from.number);
  }
  KHORO_HD std::byte* acquire(std::uint32_t port, std::uint64_t bytes) noexcept {
    End& to = end(port);
    if (to.room != nullptr) return to.room;
    if (!has_credit(to)) return nullptr;
    to.bytes = static_cast<std::uint32_t>(bytes);
    to.elsewhere = false;
    to.flagged = bytes > 0 && bytes <= to.layout.flagged_bytes && staging_.take(to);
    if (to.flagged)
      ++departing_;
    else
      to.room = to.body(to.number + 1);
    return to.room;
  }
  KHORO_HD std::uint64_t payload_limit(std::uint32_t port) const noexcept {
    return end(port).layout.slot_bytes;
  }
  KHORO_HD void publish(std::uint32_t port, const MessageHead& head) noexcept {
    End& to = end(port);
    if (to.flagged) --departing_;
    staging_.give_back(to);
    show(to, head);
  }

  KHORO_HD const Window* window(std::uint32_t port) noexcept {
    const Offer* const offer = oldest_offer(end(port));
    if (offer == nullptr) return nullptr;
    window_seen_ = {offer->data, offer->bytes};
    return &window_seen_;
  }
  KHORO_HD void publish_put(std::uint32_t port, const MessageHead& head) noexcept {
    End& to = end(port);
    std::byte* const window = oldest_offer(to)->data;
    ++to.windows;
    if (window != nullptr) return publish_at(to, head, window);
    publish(port, head);
  }
  KHORO_HD bool offer(std::uint32_t port, const Window& window, std::uint32_t stage,
                      std::uint64_t tile) noexcept {
    End& from = end(port);
    std::byte* const data = is_direct(from, window.bytes) ? window.data : nullptr;
    if (!make_offer(from, window.bytes, data)) return false;
    offered(port, from.offered - 1) = {stage, tile, true};
    return true;
  }
  KHORO_HD OfferedWindow oldest_window(std::uint32_t port) const noexcept {
    const End& from = end(port);
    return from.offered == from.windows ? OfferedWindow{} : offered(port, from.windows);
  }
  KHORO_HD void window_taken(std::uint32_t port) noexcept { ++end(port).windows; }

  KHORO_HD bool lends_from(const Stage& stage) const noexcept {
    return call_.direct.reached_by != 0 && (stage.flags & call_.direct.flag) != 0;
  }
  KHORO_HD bool lends() const noexcept { return loans_.count() > 0; }
  KHORO_HD bool lent(const std::byte* data, std::uint64_t bytes) noexcept {
    if (!loans_.overlap(data, bytes)) return false;
    take_back();
    return loans_.overlap(data, bytes);
  }
  KHORO_HD bool may_lend(std::uint32_t port, const Move& move, std::uint64_t bytes) noexcept {
    if (!is_direct(end(port), bytes)) return false;
    // The sinks before this one may come to be loans, too.
    if (loans_.count() + move.sink_count >= most_loans) take_back();
    return loans_.count() + move.sink_count < most_loans;
  }
  KHORO_HD void lend(std::uint32_t port, const MessageHead& head, const std::byte* data) noexcept {
    End& to = end(port);
    publish_at(to, head, const_cast<std::byte*>(data));
    loans_.add({data, head.bytes, to.number, port});
  }
  /// Forgets the loans that are back.
  KHORO_HD void take_back() noexcept {
    loans_.take_back([this](const Loan& loan) { return is_back(loan); });
  }

  /// Takes in what the messages of a step carry in flagged words, and has the next stages at hand.
  /// Waits for words that are under way.
  template <class Team>
  KHORO_HD void before_move(const Team& team, const LaneState& lane) noexcept {
    if (arriving_ > 0) {
      for (std::uint32_t k = 0; k < lane.move.source_count; ++k) {
        const Source& source = lane.sources[k];
        if (source.verb == Verb::read || !end(source.port).flagged) continue;
        const bool whole = take_in(team, end(source.port), [this] { return stopped(); });
        if (!whole) publish_alone(robbed_, 1u);
      }
      team.sync();
    }
    if (wanted_ == none) return;
    const std::uint32_t first = wanted_, left = lane.last - first;
    for (std::uint32_t i = team.rank(); i < window_most && i < left; i += team.size())
      window_[i] = program().stages[first + i];
    team.sync();
    if (team.rank() != 0) return;
    window_first_ = first;
    wanted_ = none;
  }
  /// Sends what a step has for its peers in flagged words.
  template <class Team>
  KHORO_HD void after_move(const Team& team, const LaneState& lane) const noexcept {
    if (departing_ == 0) return;
    team.sync();
    for (std::uint32_t k = 0; k < lane.move.sink_count; ++k) {
      const Sink& sink = lane.sinks[k];
      if (sink.kind != Sink::Kind::write && end(sink.port).flagged) send_out(team, end(sink.port));
    }
  }
  /// Some of the data of the step never came, because the host wants the kernel to end.
  KHORO_HD bool robbed() noexcept { return observe_alone(robbed_) != 0; }

  template <class Team>
  KHORO_HD void fold(const Team& team, const FoldRequest& request) const noexcept {
    if (only_copies(request)) {
      FoldRequest bytes = request;
      bytes.elements <<= shift(request.operands[0].form);
      return copy_bytes(team, bytes);
    }
    visit(call_.dtype, call_.reduction, call_.partials,
          [&]<class T, class Operation>(T, Operation) {
            using Element = typename T::Element;
            if constexpr (std::is_integral_v<Element> && ignores_sign<Operation>)
              fold_as<Types<std::make_unsigned_t<Element>>, Operation>(team, request, call_.factor);
            else
              fold_as<T, Operation>(team, request, call_.factor);
          });
  }

 private:
  static constexpr std::uint32_t most_loans = 32;
  static constexpr std::uint32_t window_most = 64;
  static constexpr std::uint32_t none = ~0u;

  KHORO_HD const Program& program() const noexcept { return call_.program; }
  KHORO_HD End& end(std::uint32_t port) const noexcept { return *strand_.ends[port]; }
  KHORO_HD OfferedWindow& offered(std::uint32_t port, std::uint64_t number) const noexcept {
    return strand_.windows[port * End::most_windows + number % End::most_windows];
  }
  KHORO_HD bool is_direct(const End& end, std::uint64_t bytes) const noexcept {
    return (call_.direct.reached_by & end.peer_device) != 0 && bytes >= call_.direct.least;
  }
  KHORO_HD bool is_back(const Loan& loan) const noexcept {
    End& to = end(loan.port);
    if (to.credit < loan.number) to.credit = khoro::observe(*to.released);
    return to.credit >= loan.number;
  }
  KHORO_HD void publish_at(End& to, const MessageHead& head, std::byte* data) noexcept {
    to.room = data;
    to.elsewhere = true;
    show(to, head);
    to.room = nullptr;
  }
  KHORO_HD void place(Run& run, std::int32_t chunk) const noexcept {
    if (run.buffer == Buffer::scratch) {
      const Held& held = strand_.held[chunk];
      run.data = call_.scratch + static_cast<std::uint64_t>(chunk) * call_.scratch_stride;
      run.left = held.elements;
      run.form = held.form;
      return;
    }
    const Block piece = call_.cuts.piece(run.buffer, chunk, run.tile);
    std::byte* const base = run.buffer == Buffer::input ? call_.input : call_.output;
    run.data = base + (piece.first << shift(Form::dtype));
    run.left = piece.count;
    run.form = Form::dtype;
  }

  Call call_;
  const Strand strand_;
  Staging staging_;
  std::uint32_t arriving_ = 0;  // flagged messages of the step
  std::uint32_t departing_ = 0;
  std::uint32_t robbed_ = 0;
  Status status_ = Status::ok;
  Message message_;
  Window window_seen_;
  Loans<Loan[most_loans]> loans_;
  // The stages at hand, and where they are to begin.
  std::uint32_t window_first_ = none / 2;
  std::uint32_t wanted_ = none;
  Stage window_[window_most];
};

}  // namespace khoro::gpu
