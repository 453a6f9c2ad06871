// SPDX-License-Identifier: Apache-2.0
#include "executor/host_engine.h"

#include <algorithm>
#include <iterator>

#include "base/arena.h"
#include "base/error.h"
#include "executor/call_shape.h"

namespace khoro {
namespace {

/// A rank without channels is alone; its pieces only bound the memory of scratch.
constexpr std::uint64_t limit_without_channels = std::uint64_t{1} << 20;
/// References under way at once, per sending port; beyond them messages are copied.
constexpr std::size_t loans_per_port = 64;

}  // namespace

HostEngine::HostEngine(const Image& image, const Collective& collective, Ends& ends,
                       const ExecutionOptions& options)
    : image_(image),
      collective_(collective),
      tokens_(image.token_counts),
      short_bytes_(options.short_bytes),
      rule_(options.lending),
      partials_(options.partials),
      passes_empty_(options.passes_empty),
      known_(image.stages.size()),
      own_scratch_(options.scratch ? nullptr : std::make_unique<Scratch>()),
      scratch_memory_(options.scratch ? options.scratch : own_scratch_.get()),
      held_(static_cast<std::size_t>(image.scratch_chunks)) {
#ifdef KHORO_TEST_SWITCHES
  ignores_tokens_ = options.ignores_tokens;
#endif
  open(ends);
}

void HostEngine::open(Ends& ends) {
  const std::size_t ports = image_.ports.size();
  senders_.assign(ports, nullptr);
  receivers_.assign(ports, nullptr);
  limits_.assign(ports, 0);
  local_.salts.assign(ports, 0);
  windows_.resize(ports);
  least_limit_ = ports == 0 ? limit_without_channels : UINT64_MAX;
  std::size_t sending = 0;
  for (std::size_t i = 0; i < ports; ++i) {
    const Port& port = image_.ports[i];
    if (!port.sends) {
      receivers_[i] = &ends.receiver(port.peer, port.index);
      limits_[i] = receivers_[i]->payload_limit();
    } else {
      senders_[i] = &ends.sender(port.peer, port.index);
      limits_[i] = senders_[i]->payload_limit();
      if (senders_[i]->queues()) queueing_.push_back(senders_[i]);
      ++sending;
    }
    least_limit_ = std::min(least_limit_, limits_[i]);
  }
  lands_.assign(image_.stages.size(), 0);
  for (std::size_t i = 0; i < image_.stages.size(); ++i)
    if (image_.stages[i].verb == Verb::recv)
      lands_[i] = only_copies(i) && receivers_[image_.port_of_stage[i]]->aims();
  for (std::size_t i = 0; i < image_.stages.size(); ++i)
    if (image_.stages[i].verb == Verb::offer)
      windows_[image_.port_of_stage[i]].ring.resize(Windows::most);
  most_loans_ = sending * loans_per_port;
  loans_.room().resize(most_loans_ + sending);
}

/// A received message is the only source of its step, and written to output as it is.
bool HostEngine::only_copies(std::size_t stage) const noexcept {
  const std::vector<Stage>& stages = image_.stages;
  const bool first = stage == 0 || (stages[stage - 1].flags & Stage::ends) != 0 ||
                     stages[stage - 1].verb == Verb::await;
  if (!first || (stages[stage].flags & (Stage::ends | Stage::reduces | Stage::premul)) != 0)
    return false;
  return stages[stage + 1].verb == Verb::write && stages[stage + 1].buffer == Buffer::output;
}

void HostEngine::start(const CallArguments& call) {
  buffers_ = call.buffers;
  digest_ = call.digest;
  own_.reduction = call.own;
  if (shape_ == 0 || call.count != count_ || call.dtype != dtype_ || call.reduction != reduction_ ||
      call.blocks)
    reshape(call);
  scratch_ = scratch_memory_->at_least(scratch_bytes_);  // another execution may have moved it
  choose_what_to_lend();
}

void HostEngine::choose_what_to_lend() noexcept {
  const bool in_place = bytes_.overlap(buffers_);
  const std::uint64_t larger = std::max(bytes_.input, bytes_.output);
  lends_input_ = image_.lends_in_place || !in_place;
  lends_results_ = larger >= rule_.least_of_results * (in_place ? rule_.in_place : 1);
  lends_to_kernel_ = larger <= rule_.most_of_fetched && !collective_.reduces();
}

bool HostEngine::may_lend(std::uint32_t port, const Move& move, std::uint64_t bytes) noexcept {
  if (bytes < rule_.least) return false;
  switch (senders_[port]->lending(move.lendable, bytes)) {
    case Lending::none:
      return false;
    case Lending::in_place:
      if (move.written && !lends_results_) return false;
      break;
    case Lending::fetched:
      if (move.written || !lends_to_kernel_ || bytes < rule_.least_fetched) return false;
      break;
    case Lending::sent:
      break;
  }
  return has_room_for_loan();
}

void HostEngine::reshape(const CallArguments& call) {
  const CallShape shape = shape_of(image_, collective_, call, partials_, least_limit_);
  const bool by_function = call.reduction == Reduction::user;
  std::fill(held_.begin(), held_.end(), Held{});
  count_ = call.count;
  dtype_ = call.dtype;
  reduction_ = call.reduction;
  blocks_ = call.blocks;
  bytes_ = BufferBytes::of(collective_, call);
  grid_ = shape.grid;
  tiles_ = grid_.tiles();
  if (tiles_ == 0 && passes_empty_) tiles_ = 1;
  room_ = shape.room;
  scratch_stride_ = shape.scratch_stride;
  scratch_bytes_ = scratch_stride_ * held_.size();
  std::copy(std::begin(shape.shift), std::end(shape.shift), shift_);
  carry_form_ = shape.carry_form;
  own_.dtype = dtype_;
  fold_ = by_function ? fold_by_function : find_fold(dtype_, reduction_, partials_);
  ++shape_;
  if (longest_message() > short_bytes_)
    for (Sender* sender : senders_)
      if (sender) sender->use_all_slots();
  local_blocks_ = blocks_ && blocks_->local;
  if (local_blocks_) local_.take(image_, *blocks_, grid_);
}

/// Bytes of the longest message of the call if it were not cut into tiles, about.
std::uint64_t HostEngine::longest_message() const noexcept {
  std::size_t longest = count_;
  if (blocks_)
    for (const auto* side : {&blocks_->input, &blocks_->output})
      for (const Block& block : *side) longest = std::max(longest, block.count);
  const auto parts = static_cast<std::size_t>(std::max(image_.chunks / collective_.blocks(), 1));
  const auto widest = static_cast<std::size_t>(std::max(image_.widest_message, 1));
  return (longest / parts + (longest % parts != 0)) * widest << shift_[0];
}

void HostEngine::look_up(Known& known, Buffer buffer, std::int32_t chunk,
                         std::uint64_t tile) const noexcept {
  const Grid::Piece piece = grid_.piece(buffer, chunk, tile);
  known = {piece.first << shift_[0], piece.count, shape_, tile};
}

void HostEngine::next_piece(Run& run) const noexcept {
  const std::int32_t chunk = run.next++;
  if (run.buffer == Buffer::scratch) {
    const Form form = run.form;
    place_scratch(run, chunk);
    if (!run.fresh) return;
    run.left = length(chunk, run.tile);
    run.form = form;
    return;
  }
  const Grid::Piece piece = grid_.piece(run.buffer, chunk, run.tile);
  run.data = base(run.buffer) + (piece.first << shift_[0]);
  run.left = piece.count;
  run.form = Form::dtype;
}

/// What lies between blocks, and beside the output on its first and last page, is the caller's.
bool HostEngine::has_whole_pages(const Window& window) const noexcept {
  if (blocks_ || window.data == nullptr) return false;
  const auto first = reinterpret_cast<std::uintptr_t>(window.data) & ~(Arena::page - 1);
  const auto end =
      (reinterpret_cast<std::uintptr_t>(window.data) + window.bytes + Arena::page - 1) &
      ~(Arena::page - 1);
  const auto output = reinterpret_cast<std::uintptr_t>(buffers_.output);
  return first >= output && end <= output + bytes_.output;
}

bool HostEngine::offer(std::uint32_t port, Window window, std::uint32_t stage,
                       std::uint64_t tile) noexcept {
  Windows& windows = windows_[port];
  if (windows.offered - windows.taken == Windows::most) return false;
  window.whole_pages = has_whole_pages(window);
  if (!receivers_[port]->try_offer(window)) return false;
  windows.ring[windows.offered++ % Windows::most] = {stage, tile, true};
  return true;
}

OfferedWindow HostEngine::oldest_window(std::uint32_t port) const noexcept {
  const Windows& windows = windows_[port];
  if (windows.offered == windows.taken) return {};
  return windows.ring[windows.taken % Windows::most];
}

void HostEngine::lend(std::uint32_t port, const MessageHead& head, const std::byte* data) noexcept {
  senders_[port]->publish_reference(head, data);
  loans_.add({data, head.bytes, senders_[port]->published(), port});
}

bool HostEngine::lent(const std::byte* data, std::uint64_t bytes) noexcept {
  if (!loans_.overlap(data, bytes)) return false;
  take_back_loans();
  return loans_.overlap(data, bytes);
}

int HostEngine::owing_peer() const noexcept {
  if (lends()) return image_.ports[loans_[0].port].peer;
  for (std::size_t i = 0; i < senders_.size(); ++i)
    if (senders_[i] && senders_[i]->queues() && !senders_[i]->flushed())
      return image_.ports[i].peer;
  return -1;
}

bool HostEngine::all_returned() noexcept {
  take_back_loans();
  return !lends() && std::all_of(queueing_.begin(), queueing_.end(),
                                 [](Sender* sender) { return sender->flushed(); });
}

}  // namespace khoro
