// SPDX-License-Identifier: Apache-2.0
#include "launch_sessions.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/descriptor.h"

namespace khoro::tool {
namespace {

/// The session of a process that is no zombie, or 0.
pid_t session_of(const char* process) {
  char path[64], text[512];
  std::snprintf(path, sizeof path, "/proc/%s/stat", process);
  Descriptor file(::open(path, O_RDONLY | O_CLOEXEC));
  if (!file) return 0;
  ssize_t size = ::read(file.number(), text, sizeof text - 1);
  if (size <= 0) return 0;
  text[size] = 0;
  // The name, in parentheses, may hold anything; state, parent, group and session follow.
  const char* after = std::strrchr(text, ')');
  char state;
  int parent, group, session;
  if (!after || std::sscanf(after + 1, " %c %d %d %d", &state, &parent, &group, &session) != 4)
    return 0;
  return state == 'Z' || state == 'X' ? 0 : session;
}

}  // namespace

std::vector<pid_t> processes_of(std::span<const pid_t> sessions) {
  std::vector<pid_t> found;
  DIR* directory = ::opendir("/proc");
  if (!directory) return found;
  while (dirent* entry = ::readdir(directory)) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    pid_t session = session_of(entry->d_name);
    if (session > 0 && std::find(sessions.begin(), sessions.end(), session) != sessions.end())
      found.push_back(std::atoi(entry->d_name));
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
