// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace khoro {

enum class Buffer : std::uint8_t { input, output, scratch };

constexpr std::string_view name(Buffer buffer) noexcept {
  switch (buffer) {
    case Buffer::input:
      return "input";
    case Buffer::output:
      return "output";
    case Buffer::scratch:
      break;
  }
  return "scratch";
}

/// Chunks [first, last) of a buffer.
struct Span {
  Buffer buffer = Buffer::input;
  std::int32_t first = 0;
  std::int32_t last = 0;
  bool operator==(const Span&) const = default;
};

constexpr Span input(int chunk) { return {Buffer::input, chunk, chunk + 1}; }
constexpr Span input(int first, int last) { return {Buffer::input, first, last}; }
constexpr Span output(int chunk) { return {Buffer::output, chunk, chunk + 1}; }
constexpr Span output(int first, int last) { return {Buffer::output, first, last}; }
constexpr Span scratch(int chunk) { return {Buffer::scratch, chunk, chunk + 1}; }
constexpr Span scratch(int first, int last) { return {Buffer::scratch, first, last}; }

enum class Verb : std::uint8_t {
  await,   // token
  offer,   // span, channel: grants the window to the channel's sender
  read,    // span: a source
  recv,    // channel: a source
  take,    // channel: a source, the oldest window offered on it
  scale,   // divides by the number of ranks
  write,   // span
  send,    // channel
  put,     // channel: fills the peer's oldest open window
  signal,  // token
};

/// One stage of a pipeline, 16 bytes, trivially copyable: algorithms make it, `verify` proves it,
/// host and device run it, all in this one form.
struct Stage {
  static constexpr std::uint8_t reduces = 1;  // this source is folded in as the right operand
  static constexpr std::uint8_t premul = 2;   // the rank's own factor is applied to the span
  static constexpr std::uint8_t ends = 4;     // last stage of its step

  Verb verb = Verb::read;
  Buffer buffer = Buffer::input;
  std::uint8_t flags = 0;
  std::uint8_t index = 0;  // of the channel; `lane` as built, resolved when a lane is flattened
  std::int32_t peer_or_token = 0;
  std::int32_t first = 0;
  std::int32_t last = 0;

  constexpr bool is_source() const noexcept {
    return verb == Verb::read || verb == Verb::recv || verb == Verb::take;
  }
  constexpr bool has_channel() const noexcept {
    return verb == Verb::offer || verb == Verb::recv || verb == Verb::take || verb == Verb::send ||
           verb == Verb::put;
  }
  constexpr bool has_span() const noexcept {
    return verb == Verb::offer || verb == Verb::read || verb == Verb::write;
  }
  constexpr Span span() const noexcept { return {buffer, first, last}; }
  constexpr int peer() const noexcept { return peer_or_token; }
  constexpr int token() const noexcept { return peer_or_token; }
  bool operator==(const Stage&) const = default;
};
static_assert(sizeof(Stage) == 16 && std::is_trivially_copyable_v<Stage>);

/// A step: one line of a plan. All its sources and credits must be there before it fires; then its
/// sources are folded left to right, and the value goes to all its writes, sends and puts.
///
/// Built with the words of the grammar: `recv(3) | reduce(input(2)) | write(output(2)) | send(1)`.
class Step {
 public:
  Step(Stage stage) { add(stage); }  // NOLINT: a stage alone is a step

  std::span<const Stage> stages() const noexcept {
    return more_.empty() ? std::span<const Stage>(few_.data(), count_) : std::span(more_);
  }
  std::span<Stage> stages() noexcept {
    return more_.empty() ? std::span<Stage>(few_.data(), count_) : std::span(more_);
  }

  void add(Stage stage) {
    if (more_.empty() && count_ < few_.size())
      few_[count_++] = stage;
    else
      spill(stage);
  }

 private:
  [[gnu::noinline]] void spill(Stage stage) {
    if (more_.empty()) more_.assign(few_.begin(), few_.end());
    more_.push_back(stage);
  }

  // Nearly every step of nearly every plan fits; a step over many ranks moves to the heap.
  std::array<Stage, 6> few_;
  std::uint32_t count_ = 0;
  std::vector<Stage> more_;
};

/// The channel index that stands for "the number of the lane that names it".
inline constexpr std::uint8_t own_lane = 255;

constexpr Stage span_stage(Verb verb, Span span, std::uint8_t flags = 0) {
  return {verb, span.buffer, flags, own_lane, 0, span.first, span.last};
}
constexpr Stage channel_stage(Verb verb, int peer, int index) {
  return {verb, Buffer::input, 0, static_cast<std::uint8_t>(index), peer, 0, 0};
}
constexpr Stage token_stage(Verb verb, int token) {
  return {verb, Buffer::input, 0, own_lane, token, 0, 0};
}

constexpr Stage await(int token) { return token_stage(Verb::await, token); }
constexpr Stage signal(int token) { return token_stage(Verb::signal, token); }
constexpr Stage read(Span span) { return span_stage(Verb::read, span); }
constexpr Stage write(Span span) { return span_stage(Verb::write, span); }
constexpr Stage scale() { return {Verb::scale, Buffer::input, 0, own_lane, 0, 0, 0}; }
constexpr Stage recv(int peer, int index = own_lane) {
  return channel_stage(Verb::recv, peer, index);
}
constexpr Stage take(int peer, int index = own_lane) {
  return channel_stage(Verb::take, peer, index);
}
constexpr Stage send(int peer, int index = own_lane) {
  return channel_stage(Verb::send, peer, index);
}
constexpr Stage put(int peer, int index = own_lane) {
  return channel_stage(Verb::put, peer, index);
}
constexpr Stage offer(Span span, int peer, int index = own_lane) {
  return {Verb::offer, span.buffer, 0,        static_cast<std::uint8_t>(index),
          peer,        span.first,  span.last};
}
/// The source as the right operand of the collective's reduction.
constexpr Stage reduce(Stage source) {
  source.flags |= Stage::reduces;
  return source;
}
constexpr Stage reduce(Span span) { return reduce(read(span)); }

/// Lengthens the step in place: proofs of large plans make millions of steps.
inline Step&& operator|(Step&& step, Stage stage) {
  step.add(stage);
  return std::move(step);
}
inline Step operator|(const Step& step, Stage stage) { return Step(step) | stage; }
inline Step operator|(Stage first, Stage second) {
  Step step(first);
  step.add(second);
  return step;
}

}  // namespace khoro
