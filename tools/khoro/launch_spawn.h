// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/descriptor.h"
#include "launch_guardian.h"

namespace khoro::tool {

/// What all processes of a job have in common.
struct Job {
  int processes = 1;
  int threads = 1;  // ranks that each process holds
  std::vector<std::string> command;
  int key = -1;           // the descriptor that holds the job's key
  int recorder = -1;      // the descriptor of the flight recorder's socket
  int port = 0;           // reserved for the ranks' own use; 0: there is none
  std::string transport;  // of KHORO_TRANSPORT; empty: what the environment says
  /// Where each process writes to files of its own; empty: to the launcher.
  std::string output_directory;

  int ranks() const noexcept { return processes * threads; }
};

/// A process of the job, just started, and what it writes: nothing if that goes to files.
struct Spawned {
  pid_t process = 0;
  Descriptor output;
  Descriptor error;
};

/// Where a program that was named without a slash lies: beside the launcher, else as named, to be
/// looked for on PATH.
std::string find_program(const std::string& name);

/// Keeps a port of the loopback from others who take any that is free, while it is held: a process
/// that allows the reuse of its address, as servers do, can listen there. None if there is none.
Descriptor reserve_port();
int port_of(const Descriptor& socket) noexcept;

/// Starts process `index` as the leader of its own session. It is killed when the launcher dies.
/// Throws `Error`: invalid_argument if the program cannot be run.
Spawned spawn(const Job& job, int index, SessionList& sessions);

}  // namespace khoro::tool
