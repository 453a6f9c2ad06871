// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/descriptor.h"

namespace khoro::tool {

/// What waits to be written to the launcher's own standard output or error. Never blocks: it writes
/// what is taken at once.
class Sink {
 public:
  explicit Sink(int descriptor) : descriptor_(descriptor) {}

  int descriptor() const noexcept { return descriptor_; }
  void add(std::string_view text) { waiting_.append(text); }
  bool empty() const noexcept { return written_ == waiting_.size(); }
  /// Holds so much that the ranks should wait.
  bool full() const noexcept { return waiting_.size() - written_ > most_waiting; }
  /// Nothing can be written any more: what is added disappears.
  bool broken() const noexcept { return broken_; }
  /// Why, as of errno, the first time that it is asked after that; else 0.
  int take_fault() noexcept { return std::exchange(fault_, 0); }
  void write_some();

 private:
  static constexpr std::size_t most_waiting = 1 << 20;
  int descriptor_;
  std::string waiting_;
  std::size_t written_ = 0;
  bool broken_ = false;
  int fault_ = 0;
};

/// One output of one rank: cut into lines, each with the rank's tag in front, so that lines of
/// several ranks never mix. A line that never ends is cut after 1 MiB.
class TaggedStream {
 public:
  TaggedStream(Descriptor pipe, std::string tag, Sink& sink)
      : pipe_(std::move(pipe)), tag_(std::move(tag)), sink_(&sink) {}

  /// -1 once the other end is closed and everything was taken.
  int descriptor() const noexcept { return pipe_.number(); }
  Sink& sink() const noexcept { return *sink_; }
  /// Reads what is there, up to 64 KiB, and passes on whole lines.
  void read_some();
  /// Closes it, and passes on an unfinished line.
  void close();

 private:
  void pass_on(std::string_view line);

  static constexpr std::size_t most_line = 1 << 20;
  Descriptor pipe_;
  std::string tag_;
  Sink* sink_;
  std::string unfinished_;
};

}  // namespace khoro::tool
