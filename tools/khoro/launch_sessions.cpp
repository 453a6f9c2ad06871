// SPDX-License-Identifier: Apache-2.0
#include "launch_sessions.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>

#include "base/process_stat.h"

namespace khoro::tool {
namespace {

/// The session of a process that is no zombie, or 0.
pid_t session_of(pid_t process) {
  const auto stat = stat_of(process);
  return !stat || stat->ended() ? 0 : stat->session;
}

}  // namespace

std::vector<pid_t> processes_of(std::span<const pid_t> sessions) {
  std::vector<pid_t> found;
  DIR* directory = ::opendir("/proc");
  if (!directory) return found;
  while (dirent* entry = ::readdir(directory)) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    const pid_t process = std::atoi(entry->d_name);
    const pid_t session = session_of(process);
    if (session > 0 && std::find(sessions.begin(), sessions.end(), session) != sessions.end())
      found.push_back(process);
  }
  ::closedir(directory);
  return found;
}

void signal_sessions(std::span<const pid_t> sessions, int signal) {
  for (pid_t process : processes_of(sessions)) ::kill(process, signal);
}

int kill_sessions(std::span<const pid_t> sessions) {
  int at_first = -1;
  for (int round = 0; round < 300; ++round) {
    auto found = processes_of(sessions);
    if (at_first < 0) at_first = static_cast<int>(found.size());
    if (found.empty()) break;
    for (pid_t process : found) ::kill(process, SIGKILL);
    ::poll(nullptr, 0, 10);
  }
  return at_first;
}

}  // namespace khoro::tool
