// SPDX-License-Identifier: Apache-2.0
#include "launch_output.h"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace khoro::tool {

void Sink::write_some() {
  while (!empty()) {
    // A pipe that polls writable takes PIPE_BUF bytes without blocking. The descriptor is shared
    // with whoever started the launcher, so it is not made non-blocking.
    pollfd one{descriptor_, POLLOUT, 0};
    if (::poll(&one, 1, 0) != 1) break;
    std::size_t size = std::min<std::size_t>(waiting_.size() - written_, PIPE_BUF);
    ssize_t written = broken_ ? static_cast<ssize_t>(size)
                              : ::write(descriptor_, waiting_.data() + written_, size);
    if (written < 0 && (errno == EINTR || errno == EAGAIN)) break;
    if (written < 0) {
      broken_ = true;
      fault_ = errno;
      continue;
    }
    written_ += static_cast<std::size_t>(written);
  }
  if (empty() || written_ > most_waiting) {
    waiting_.erase(0, written_);
    written_ = 0;
  }
}

void TaggedStream::pass_on(std::string_view line) {
  sink_->add(tag_);
  sink_->add(line);
}

void TaggedStream::read_some() {
  char block[65'536];
  ssize_t size = ::read(pipe_.number(), block, sizeof block);
  if (size < 0 && (errno == EINTR || errno == EAGAIN)) return;
  // Nobody reads what it says: it is told as if it wrote there itself.
  if (size <= 0 || sink_->broken()) return close();
  std::string_view rest(block, static_cast<std::size_t>(size));
  for (;;) {
    auto end = rest.find('\n');
    if (end == rest.npos) break;
    if (unfinished_.empty()) {
      pass_on(rest.substr(0, end + 1));
    } else {
      unfinished_.append(rest.substr(0, end + 1));
      pass_on(unfinished_);
      unfinished_.clear();
    }
    rest.remove_prefix(end + 1);
  }
  unfinished_.append(rest);
  if (unfinished_.size() > most_line) {
    pass_on(unfinished_ + '\n');
    unfinished_.clear();
  }
}

void TaggedStream::close() {
  if (!unfinished_.empty()) pass_on(unfinished_ + '\n');
  unfinished_.clear();
  pipe_ = Descriptor();
}

}  // namespace khoro::tool
