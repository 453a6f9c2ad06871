// SPDX-License-Identifier: Apache-2.0
#include "base/shared_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <mutex>
#include <utility>

#include "base/error.h"

namespace khoro {

struct Mapping::Region {
  Region(std::byte* address, std::size_t length) : data(address), bytes(length) {}
  ~Region() { ::munmap(data, bytes); }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  std::byte* data;
  std::size_t bytes;
};

namespace {

using Identity = std::pair<dev_t, ino_t>;

struct Table {
  std::mutex mutex;
  std::map<Identity, std::weak_ptr<const Mapping::Region>> regions;
};

// Never destroyed: a Mapping may outlive static objects.
Table& the_table() {
  static Table& table = *new Table;
  return table;
}

struct stat checked(int descriptor, std::uint64_t least_bytes, const std::string& what) {
  struct stat status {};
  struct statfs system {};
  if (::fstat(descriptor, &status) != 0 || ::fstatfs(descriptor, &system) != 0)
    throw_errno(what + ": cannot look at its descriptor");
  const int seals = ::fcntl(descriptor, F_GET_SEALS);
  // Pages of hugetlbfs may be missing at the first touch, which is a SIGBUS.
  if (seals < 0 || system.f_type != TMPFS_MAGIC) {
    throw Error(Code::system_error, what + ": not an ordinary memfd");
  }
  if ((seals & F_SEAL_SHRINK) == 0) {
    throw Error(Code::system_error, what + ": not sealed, so its owner could cut it under us");
  }
  const auto bytes = static_cast<std::uint64_t>(status.st_size);
  if (bytes < std::max<std::uint64_t>(least_bytes, 1)) {
    throw Error(Code::system_error,
                fmt::format("{}: has {} bytes, needs {}", what, bytes, least_bytes));
  }
  return status;
}

std::shared_ptr<const Mapping::Region> map(int descriptor, std::size_t bytes,
                                           const std::string& what) {
  void* address =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor, 0);
  if (address == MAP_FAILED) throw_errno(fmt::format("{}: cannot map {} bytes", what, bytes));
  return std::make_shared<Mapping::Region>(static_cast<std::byte*>(address), bytes);
}

}  // namespace

Descriptor make_shared_memory(const std::string& label, std::uint64_t bytes) {
  Descriptor memory(::memfd_create(label.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory) throw_errno("cannot make shared memory (memfd_create)");
  if (::ftruncate(memory.number(), static_cast<off_t>(bytes)) != 0) {
    throw_errno(fmt::format("cannot make shared memory of {} bytes", bytes));
  }
  if (::fcntl(memory.number(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    throw_errno("cannot seal shared memory");
  }
  return memory;
}

void check_shared_memory(int descriptor, std::uint64_t least_bytes, const std::string& what) {
  checked(descriptor, least_bytes, what);
}

std::uint64_t resident_bytes(std::span<const std::byte> memory) noexcept {
  constexpr std::size_t page = 4096;
  std::array<unsigned char, 4096> in_memory{};
  std::uint64_t pages = 0;
  while (!memory.empty()) {
    const std::span<const std::byte> part =
        memory.first(std::min(memory.size(), in_memory.size() * page));
    memory = memory.subspan(part.size());
    // It does not write there.
    auto* const address = const_cast<std::byte*>(part.data());
    const std::size_t count = (part.size() + page - 1) / page;
    if (::mincore(address, part.size(), in_memory.data()) != 0) in_memory.fill(1);
    for (std::size_t i = 0; i < count; ++i) pages += in_memory[i] & 1u;
  }
  return pages * page;
}

Mapping Mapping::open(int descriptor, std::uint64_t least_bytes, const std::string& what) {
  const struct stat status = checked(descriptor, least_bytes, what);
  const auto bytes = static_cast<std::uint64_t>(status.st_size);
  Table& table = the_table();
  const std::lock_guard lock(table.mutex);
  std::erase_if(table.regions, [](const auto& entry) { return entry.second.expired(); });
  auto& known = table.regions[{status.st_dev, status.st_ino}];
  Mapping mapping;
  mapping.region_ = known.lock();
  if (mapping.region_ == nullptr) {
    mapping.region_ = map(descriptor, bytes, what);
    known = mapping.region_;
  }
  return mapping;
}

std::span<std::byte> Mapping::bytes() const noexcept {
  if (region_ == nullptr) return {};
  return {region_->data, region_->bytes};
}

}  // namespace khoro
