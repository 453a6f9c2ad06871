// SPDX-License-Identifier: Apache-2.0
#include "communicator/trace_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace khoro {
namespace {

[[noreturn]] void refuse(const std::string& path) {
  throw Error(Code::invalid_argument,
              fmt::format("the trace file '{}' cannot be written: {}", path, std::strerror(errno)));
}

bool write_whole(const Descriptor& file, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = ::write(file.number(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

/// The file, with the bracket that begins it. Others may open it at the same time.
Descriptor open_trace(const std::string& path, bool anew) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666));
  if (!file || ::flock(file.number(), LOCK_EX) != 0) refuse(path);
  struct stat now {};
  if ((anew && ::ftruncate(file.number(), 0) != 0 && errno != EINVAL) ||  // a pipe has no length
      ::fstat(file.number(), &now) != 0 || (now.st_size == 0 && !write_whole(file, "[\n")))
    refuse(path);
  ::flock(file.number(), LOCK_UN);
  return file;
}

}  // namespace

TraceFile& TraceFile::of_process() {
  static TraceFile& file = *new TraceFile;  // ranks may write while the process ends
  return file;
}

void TraceFile::open_first(const std::string& path, bool anew) {
  const std::lock_guard lock(mutex_);
  if (asked_) return;
  use(open_trace(path, anew));
}

void TraceFile::open(const std::string& path) {
  const std::lock_guard lock(mutex_);
  use(open_trace(path, false));
}

void TraceFile::use(Descriptor file) noexcept {
  asked_ = true;
  file_ = std::move(file);
  if (file_) opened_.fetch_add(1, std::memory_order_relaxed);
  wanted_.store(static_cast<bool>(file_), std::memory_order_relaxed);
}

void TraceFile::close() noexcept {
  const std::lock_guard lock(mutex_);
  use({});
}

void TraceFile::append(std::string_view events) noexcept {
  const std::lock_guard lock(mutex_);
  if (!file_ || write_whole(file_, events)) return;
  log(LogLevel::warn, "the trace ends here: its file cannot be written: {}", std::strerror(errno));
  use({});
}

}  // namespace khoro
