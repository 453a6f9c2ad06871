// SPDX-License-Identifier: Apache-2.0
#include "device/virtual/memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/shared_memory.h"
#include "device/arguments.h"

namespace khoro::virtual_gpu {
namespace {

/// Addresses at which there is nothing, and nothing else will be.
class Guard {
 public:
  explicit Guard(std::uint64_t bytes)
      : bytes_(bytes),
        at_(::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    if (at_ == MAP_FAILED) throw_errno(fmt::format("no addresses for {} bytes", bytes));
  }
  ~Guard() { ::munmap(at_, bytes_); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  DeviceAddress address() const noexcept { return reinterpret_cast<DeviceAddress>(at_); }

 private:
  std::uint64_t bytes_;
  void* at_;
};

/// What an allocation counts for on its device while it lives.
class Share {
 public:
  Share(Memories& memories, int device, std::uint64_t bytes)
      : memories_(memories), device_(device), bytes_(bytes) {
    memories_.take(device, bytes);
  }
  ~Share() { memories_.give_back(device_, bytes_); }
  Share(const Share&) = delete;
  Share& operator=(const Share&) = delete;

 private:
  Memories& memories_;
  int device_;
  std::uint64_t bytes_;
};

/// Shared memory that is seen twice: at addresses that callers use and nobody can touch, and, for
/// kernels and copies, where the process has it mapped.
class Memory : public DeviceMemory {
 public:
  /// `owner` is the device that it lies on, `user` one whose kernels reach it.
  Memory(Memories& memories, Descriptor descriptor, std::uint64_t bytes, int owner, int user)
      : memories_(memories),
        descriptor_(std::move(descriptor)),
        bytes_(bytes),
        owner_(owner),
        mapping_(Mapping::open(descriptor_.number(), bytes, "memory of a virtual GPU")),
        guard_(to_pages(bytes)) {
    std::vector<bool> users(memories.machine().devices.size());
    users[memories.place_of(user)] = true;
    memories.add({{AddressFacts::Kind::device, owner, address(), bytes},
                  mapping_.bytes().data(),
                  std::move(users)});
  }
  ~Memory() override { memories_.remove(address()); }

  DeviceAddress address() const noexcept override { return guard_.address(); }
  std::uint64_t bytes() const noexcept override { return bytes_; }
  std::uint64_t held() const noexcept override { return to_pages(bytes_); }

  void allow(int device) override {
    if (!memories_.machine().reach[memories_.place_of(device)][memories_.place_of(owner_)])
      throw Error(Code::invalid_usage,
                  fmt::format("virtual GPU {} does not reach memory of GPU {}", device, owner_));
    memories_.allow(address(), device);
  }

  void allow_all() noexcept override {
    for (int device = 0; device < static_cast<int>(memories_.machine().devices.size()); ++device)
      if (memories_.machine().reach[memories_.place_of(device)][memories_.place_of(owner_)])
        memories_.allow(address(), device);
  }

  MemoryHandle handle() const override {
    MemoryHandle handle;
    handle.descriptor = Descriptor(::fcntl(descriptor_.number(), F_DUPFD_CLOEXEC, 0));
    if (!handle.descriptor) throw_errno("cannot share memory of a virtual GPU");
    handle.bytes = bytes_;
    // Processes may number devices differently.
    const std::string& bus_id = memories_.machine().devices[memories_.place_of(owner_)].bus_id;
    std::memcpy(handle.words.data(), bus_id.data(), std::min(bus_id.size(), handle.words.size()));
    return handle;
  }

 private:
  Memories& memories_;
  Descriptor descriptor_;
  std::uint64_t bytes_;
  int owner_;
  Mapping mapping_;
  Guard guard_;
};

class Allocation final : private Share, public Memory {
 public:
  Allocation(Memories& memories, int device, std::uint64_t bytes)
      : Share(memories, device, to_pages(bytes)),
        Memory(memories, make_shared_memory("khoro-virtual-gpu", to_pages(bytes)), bytes, device,
               device) {}
};

class Pinned final : public PinnedMemory {
 public:
  Pinned(Memories& memories, std::span<std::byte> memory)
      : memories_(memories), address_(reinterpret_cast<DeviceAddress>(memory.data())) {
    memories.add({{AddressFacts::Kind::pinned, -1, address_, memory.size()},
                  memory.data(),
                  std::vector<bool>(memories.machine().devices.size(), true)});
  }
  ~Pinned() override { memories_.remove(address_); }
  DeviceAddress address() const noexcept override { return address_; }

 private:
  Memories& memories_;
  DeviceAddress address_;
};

}  // namespace

Memories::Memories(const VirtualMachine& machine)
    : machine_(machine), taken_(machine.devices.size()) {}

std::size_t Memories::place_of(int device) const {
  return place_of_device(device, machine_.devices.size());
}

std::unique_ptr<DeviceMemory> Memories::allocate(int device, std::uint64_t bytes) {
  check_allocation(device, bytes, machine_.devices[place_of(device)].memory_bytes);
  return std::make_unique<Allocation>(*this, device, bytes);
}

std::unique_ptr<DeviceMemory> Memories::open(int device, const MemoryHandle& handle) {
  const auto* const words = reinterpret_cast<const char*>(handle.words.data());
  const std::string_view bus_id(words, ::strnlen(words, handle.words.size()));
  const auto& devices = machine_.devices;
  const auto owner = std::find_if(devices.begin(), devices.end(),
                                  [&](const DeviceFacts& facts) { return facts.bus_id == bus_id; });
  if (!handle.descriptor || handle.bytes == 0 || owner == devices.end())
    throw Error(Code::invalid_argument, "not a handle of memory of a virtual GPU of this machine");
  const int number = static_cast<int>(owner - devices.begin());
  if (!machine_.reach[place_of(device)][place_of(number)])
    throw Error(Code::invalid_usage,
                fmt::format("virtual GPU {} does not reach memory of GPU {}", device, number));
  Descriptor own(::fcntl(handle.descriptor.number(), F_DUPFD_CLOEXEC, 0));
  if (!own) throw_errno("cannot open memory of a virtual GPU");
  return std::make_unique<Memory>(*this, std::move(own), handle.bytes, number, device);
}

std::unique_ptr<PinnedMemory> Memories::pin(std::span<std::byte> memory) {
  check_pinnable(memory);
  return std::make_unique<Pinned>(*this, memory);
}

const Memories::Region* Memories::find(DeviceAddress address) const {
  const auto after = regions_.upper_bound(address);
  if (after == regions_.begin()) return nullptr;
  const Region& region = std::prev(after)->second;
  return address - region.facts.begin < region.facts.bytes ? &region : nullptr;
}

AddressFacts Memories::facts(DeviceAddress address) const {
  const std::lock_guard lock(mutex_);
  const Region* const region = find(address);
  return region == nullptr ? AddressFacts{} : region->facts;
}

Reached Memories::reach(int device, DeviceAddress address) const {
  const std::lock_guard lock(mutex_);
  const Region* const region = find(address);
  if (region == nullptr) throw unreachable(address);
  if (!region->users[place_of(device)])
    throw Error(Code::invalid_usage,
                fmt::format("kernels of virtual GPU {} were not allowed to reach {:#x} of GPU {}",
                            device, address, region->facts.device));
  const auto data = reinterpret_cast<DeviceAddress>(region->data);
  DeviceSet devices = 0;
  for (std::size_t user = 0; user < region->users.size(); ++user)
    if (region->users[user]) devices |= only(static_cast<int>(user));
  return {data + (address - region->facts.begin), region->facts, devices};
}

std::byte* Memories::data(DeviceAddress address, std::uint64_t bytes) const {
  const std::lock_guard lock(mutex_);
  const Region* const region = find(address);
  if (region == nullptr) return reinterpret_cast<std::byte*>(address);
  const std::uint64_t from = address - region->facts.begin;
  if (bytes > region->facts.bytes - from && region->facts.kind == AddressFacts::Kind::device)
    throw Error(Code::invalid_argument,
                fmt::format("{} bytes at {:#x} end beyond their allocation", bytes, address));
  return region->data + from;
}

void Memories::add(Region region) {
  const std::lock_guard lock(mutex_);
  const DeviceAddress begin = region.facts.begin;
  const auto next = regions_.lower_bound(begin);
  const bool overlaps = find(begin) != nullptr ||
                        (next != regions_.end() && next->first - begin < region.facts.bytes);
  if (overlaps)
    throw Error(Code::invalid_usage, fmt::format("memory at {:#x} is pinned already", begin));
  regions_.emplace(begin, std::move(region));
}

void Memories::remove(DeviceAddress begin) noexcept {
  const std::lock_guard lock(mutex_);
  regions_.erase(begin);
}

void Memories::allow(DeviceAddress begin, int device) {
  const std::lock_guard lock(mutex_);
  regions_.at(begin).users[place_of(device)] = true;
}

void Memories::take(int device, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  std::uint64_t& taken = taken_[place_of(device)];
  const std::uint64_t all = machine_.devices[place_of(device)].memory_bytes;
  if (bytes > all - taken)
    throw Error(Code::out_of_memory, fmt::format("virtual GPU {} has {} of {} bytes left, not {}",
                                                 device, all - taken, all, bytes));
  taken += bytes;
}

void Memories::give_back(int device, std::uint64_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  taken_[place_of(device)] -= bytes;
}

}  // namespace khoro::virtual_gpu
