// SPDX-License-Identifier: Apache-2.0
#include "base/process_stat.h"

#include <fcntl.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "base/descriptor.h"

namespace khoro {

std::optional<ProcessStat> stat_of(pid_t process) noexcept {
  char path[64], text[1024];
  std::snprintf(path, sizeof path, "/proc/%d/stat", static_cast<int>(process));
  const Descriptor file(::open(path, O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  const ssize_t size = ::read(file.number(), text, sizeof text - 1);
  if (size <= 0) return std::nullopt;
  text[size] = 0;
  // The name, in parentheses, may hold anything; the fields from the third on follow.
  const char* after = std::strrchr(text, ')');
  ProcessStat stat;
  unsigned flags = 0;
  if (!after || std::sscanf(after + 1,
                            " %c %d %*d %d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %d "
                            "%*d %" SCNu64,
                            &stat.state, &stat.parent, &stat.session, &flags, &stat.threads,
                            &stat.started) != 6)
    return std::nullopt;
  constexpr unsigned exiting = 4;  // PF_EXITING
  stat.dying = (flags & exiting) != 0;
  return stat;
}

}  // namespace khoro
