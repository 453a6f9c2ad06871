// SPDX-License-Identifier: Apache-2.0
#include "launch_spawn.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/error.h"

extern char** environ;

namespace khoro::tool {
namespace {

struct Pipe {
  Descriptor read;
  Descriptor write;

  static Pipe open() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw_errno("cannot open a pipe for a rank's output");
    return {Descriptor(ends[0]), Descriptor(ends[1])};
  }
};

/// What a process writes to, as `stream` (out, err) of the rank that it holds first.
Pipe open_output(const Job& job, int index, const char* stream) {
  if (job.output_directory.empty()) return Pipe::open();
  const std::string path =
      fmt::format("{}/rank-{}.{}", job.output_directory, index * job.threads, stream);
  // Appended to, so that processes that share it do not write over each other.
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666));
  if (!file) throw_errno("cannot open '" + path + "' for a rank's output");
  return {Descriptor(), std::move(file)};
}

/// What PyTorch's own rendezvous reads, so that programs made for torchrun run unchanged.
void add_torch_variables(const Job& job, int index, std::vector<std::string>& entries) {
  for (const char* name : {"RANK", "LOCAL_RANK"})
    entries.push_back(fmt::format("{}={}", name, index));
  for (const char* name : {"WORLD_SIZE", "LOCAL_WORLD_SIZE"})
    entries.push_back(fmt::format("{}={}", name, job.ranks()));
  if (job.port == 0) return;
  entries.push_back("MASTER_ADDR=127.0.0.1");
  entries.push_back(fmt::format("MASTER_PORT={}", job.port));
}

/// The launcher's environment with what it tells this process, and nothing of a launcher around it.
std::vector<std::string> environment_of(const Job& job, int index) {
  std::vector<std::string> entries = {
      fmt::format("KHORO_RANK={}", index * job.threads),
      fmt::format("KHORO_SIZE={}", job.ranks()),
      fmt::format("KHORO_LOCAL_RANK={}", index * job.threads),
      fmt::format("KHORO_LOCAL_SIZE={}", job.ranks()),
      fmt::format("KHORO_THREADS={}", job.threads),
      fmt::format("KHORO_KEY_FD={}", job.key),
      fmt::format("KHORO_RECORDER_FD={}", job.recorder),
  };
  if (job.threads == 1) add_torch_variables(job, index, entries);
  if (!job.transport.empty()) entries.push_back(fmt::format("KHORO_TRANSPORT={}", job.transport));
  const std::size_t own = entries.size();
  for (char** entry = environ; *entry; ++entry) {
    std::string_view name(*entry);
    name = name.substr(0, std::min(name.find('='), name.size()));
    auto same = [&](const std::string& ours) {
      return ours.size() > name.size() && ours[name.size()] == '=' && ours.starts_with(name);
    };
    // By these PyTorch would look for the store of a torchrun around this job.
    if (name.starts_with("TORCHELASTIC_")) continue;
    if (std::none_of(entries.begin(), entries.begin() + static_cast<long>(own), same))
      entries.emplace_back(*entry);
  }
  return entries;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// Rank 0 reads what the launcher was given to read; a launcher in the background of its terminal
/// has no claim to that.
int standard_input(int index) {
  bool wanted = index == 0 && ::fcntl(STDIN_FILENO, F_GETFD) != -1;
  pid_t foreground = wanted ? ::tcgetpgrp(STDIN_FILENO) : -1;
  if (wanted && (foreground == -1 || foreground == ::getpgrp())) return STDIN_FILENO;
  return ::open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void restore_signals() {
  for (int signal : {SIGPIPE, SIGTTIN, SIGTTOU}) ::signal(signal, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

}  // namespace

std::string find_program(const std::string& name) {
  if (name.find('/') != name.npos) return name;
  char own[PATH_MAX];
  ssize_t size = ::readlink("/proc/self/exe", own, sizeof own);
  if (size <= 0) return name;
  std::string path(own, static_cast<std::size_t>(size));
  path = path.substr(0, path.rfind('/') + 1) + name;
  return ::access(path.c_str(), X_OK) == 0 ? path : name;
}

Descriptor reserve_port() {
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  ::setsockopt(socket.number(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::bind(socket.number(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    return Descriptor();
  return socket;
}

int port_of(const Descriptor& socket) noexcept {
  sockaddr_in address{};
  socklen_t length = sizeof address;
  if (::getsockname(socket.number(), reinterpret_cast<sockaddr*>(&address), &length) != 0) return 0;
  return ntohs(address.sin_port);
}

Spawned spawn(const Job& job, int index, SessionList& sessions) {
  Pipe output = open_output(job, index, "out");
  Pipe error = open_output(job, index, "err");
  Pipe trouble = Pipe::open();
  int input = standard_input(index);
  auto texts = environment_of(job, index);
  auto arguments = job.command;
  auto argument_pointers = pointers_to(arguments);
  auto environment = pointers_to(texts);
  std::string program = find_program(arguments[0]);
  pid_t launcher = ::getpid();
  pid_t process = ::fork();
  if (process < 0) throw_errno(fmt::format("cannot start process {} of the job", index));
  if (process == 0) {
    ::setsid();
    sessions.enter(static_cast<std::size_t>(index), ::getpid());
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    // The launcher may have died before that.
    if (::getppid() != launcher) ::_exit(127);
    restore_signals();
    if (input != STDIN_FILENO) ::dup2(input, STDIN_FILENO);
    ::dup2(output.write.number(), STDOUT_FILENO);
    ::dup2(error.write.number(), STDERR_FILENO);
    ::execvpe(program.c_str(), argument_pointers.data(), environment.data());
    int cause = errno;
    [[maybe_unused]] auto size = ::write(trouble.write.number(), &cause, sizeof cause);
    ::_exit(127);
  }
  if (input != STDIN_FILENO) ::close(input);
  trouble.write = Descriptor();
  int cause = 0;
  ssize_t size;
  while ((size = ::read(trouble.read.number(), &cause, sizeof cause)) < 0 && errno == EINTR) {
  }
  if (size == sizeof cause) {
    ::waitpid(process, nullptr, 0);
    throw Error(Code::invalid_argument,
                fmt::format("cannot run '{}': {}{}", arguments[0], words_of_errno(cause),
                            cause == ENOENT ? ", neither beside khoro nor on PATH" : ""));
  }
  return {process, std::move(output.read), std::move(error.read)};
}

}  // namespace khoro::tool
