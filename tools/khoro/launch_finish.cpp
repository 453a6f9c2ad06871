// SPDX-License-Identifier: Apache-2.0
// What is left of a job's output when its processes have ended, and how long it is waited for.
#include <fmt/format.h>
#include <poll.h>
#include <string.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/system.h"
#include "launch.h"

namespace khoro::tool {
namespace {

using namespace std::chrono_literals;

/// How long output is still read when all processes of the job have ended: what comes then was
/// written by a process that left the job and kept the pipe.
constexpr Duration last_output_patience = 500ms;
/// What is left to read it of a job that a signal or the timeout ended.
constexpr Duration patience_with_reader = 2s;

}  // namespace

/// A reader that takes its time holds up the end, unless somebody wants it.
void Launch::finish_output() {
  finishing_ = true;
  const bool hurries = timed_out_ || ended_by_ != 0;
  const Time until = hurries ? machine().now() + patience_with_reader : never;
  while (output_is_left() && !output_given_up_ && machine().now() < until)
    pass_on_last_output(until);
  if (!output_is_left()) return;
  output_lost_ = true;
  if (!verdict_ && ended_by_ != 0) verdict_ = 128 + ended_by_;
  say("not all output was written: " +
      (output_given_up_
           ? fmt::format("ended by signal {} (SIG{})", ended_by_, ::sigabbrev_np(ended_by_))
           : fmt::format("the rest was not read within {} s", patience_with_reader / 1s)));
  error_.write_some();
}

bool Launch::output_is_left() const {
  return !output_.empty() || !error_.empty() ||
         std::any_of(streams_.begin(), streams_.end(),
                     [](const TaggedStream& stream) { return stream.descriptor() >= 0; });
}

void Launch::pass_on_last_output(Time until) {
  std::vector<pollfd> polled = {{signals_.number(), POLLIN, 0}};
  const std::size_t first_stream = polled.size();
  const std::vector<TaggedStream*> readable = poll_output(polled);
  const Time silent_at = readable.empty() ? never : machine().now() + last_output_patience;
  const int ready =
      ::poll(polled.data(), polled.size(), milliseconds_until(std::min(silent_at, until)));
  for (std::size_t i = 0; i < readable.size(); ++i)
    if (polled[first_stream + i].revents)
      readable[i]->read_some();
    else if (ready == 0)
      readable[i]->close();
  write_output();
  if (polled[0].revents) take_signals();
}

}  // namespace khoro::tool
