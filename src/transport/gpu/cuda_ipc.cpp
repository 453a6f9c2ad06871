// SPDX-License-Identifier: Apache-2.0
#include "transport/gpu/cuda_ipc.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "base/error.h"
#include "base/log.h"
#include "base/random.h"
#include "transport/gpu/places.h"

namespace khoro {
namespace {

/// What ranks of this process share, by number.
struct Shared {
  std::mutex mutex;
  std::map<std::uint64_t, std::weak_ptr<DeviceMemory>> memories;
};
Shared& shared() {
  static auto* const shared = new Shared;
  return *shared;
}

using Probe = std::array<std::byte, GpuCard::probe_bytes>;

Probe pattern(std::uint64_t seed) {
  Probe probe;
  for (std::byte& byte : probe) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<std::byte>(seed >> 56);
  }
  return probe;
}

DeviceAddress address_of(void* data) noexcept { return reinterpret_cast<std::uintptr_t>(data); }

/// A copy that is there when it returns.
void copy(Driver& driver, int device, DeviceAddress to, DeviceAddress from, std::uint64_t bytes) {
  const std::unique_ptr<DeviceStream> stream = driver.make_stream(device);
  stream->copy(to, from, bytes);
  stream->synchronize();
}

}  // namespace

CudaIpc::CudaIpc(Driver& driver, int device, std::uint64_t bytes)
    : driver_(driver),
      device_(device),
      number_(draw_random()),
      seed_(draw_random()),
      own_(driver.allocate(device, bytes + GpuPlaces::page)) {
  Probe probe = pattern(seed_);
  copy(driver_, device_, own_->address() + bytes, address_of(probe.data()), probe.size());
  const std::lock_guard lock(shared().mutex);
  shared().memories[number_] = own_;
}

CudaIpc::~CudaIpc() {
  const std::lock_guard lock(shared().mutex);
  shared().memories.erase(number_);
}

std::uint64_t CudaIpc::bytes() const noexcept { return own_->held(); }

GpuCard CudaIpc::card() const {
  GpuCard card;
  const std::string bus_id = driver_.facts(device_).bus_id;
  bus_id.copy(card.bus_id.data(), card.bus_id.size() - 1);
  card.memory = number_;
  card.bytes = own_->bytes();
  card.words = own_->handle().words;
  card.probe = seed_;
  return card;
}

Descriptor CudaIpc::descriptor() const { return own_->handle().descriptor; }

int CudaIpc::device_at(std::string_view bus_id) const {
  for (int device = 0; device < driver_.devices(); ++device)
    if (driver_.facts(device).bus_id == bus_id) return device;
  return -1;
}

bool CudaIpc::open(int rank, int self, const GpuCard& card, bool same_process,
                   Descriptor descriptor) {
  const std::string_view bus_id(card.bus_id.data(),
                                ::strnlen(card.bus_id.data(), card.bus_id.size()));
  const auto cannot = [&](std::string_view why) {
    log(LogLevel::info,
        "rank {}: messages of rank {}, on the GPU at {}, pass memory of the host: {}", self, rank,
        bus_id, why);
    return false;
  };
  const int device = device_at(bus_id);
  if (device < 0) return cannot("this process does not see that GPU");
  if (!driver_.reaches(device_, device)) return cannot("no link between the two carries access");
  try {
    std::shared_ptr<DeviceMemory> memory;
    if (same_process) {
      const std::lock_guard lock(shared().mutex);
      const auto found = shared().memories.find(card.memory);
      if (found != shared().memories.end()) memory = found->second.lock();
      if (!memory) return cannot("it is not there");
      if (device != device_) memory->allow(device_);
    } else {
      memory = driver_.open(device_, {std::move(descriptor), card.words, card.bytes});
    }
    // What a peer says of its size is not to be believed.
    if (memory->bytes() < own_->bytes()) return cannot("it is of another size");
    if (!probe(*memory, card.probe, self)) {
      log(LogLevel::warn,
          "rank {}: the link to the GPU of rank {}, at {}, garbles data; it is not used. Look at "
          "the IOMMU and at ACS of PCIe bridges",
          self, rank, bus_id);
      return false;
    }
    others_[rank] = {std::move(memory), same_process ? device : -1};
    return true;
  } catch (const Error& error) {
    return cannot(error.what());
  }
}

bool CudaIpc::probe(DeviceMemory& memory, std::uint64_t seed, int self) {
  const DeviceAddress page = memory.address() + own_->bytes() - GpuPlaces::page;
  Probe read{};
  copy(driver_, device_, address_of(read.data()), page, read.size());
  if (read != pattern(seed)) return false;
  // A line for each writer, as long as there are lines.
  constexpr std::uint64_t line = 64;
  constexpr std::uint64_t lines = (GpuPlaces::page - GpuCard::probe_bytes) / line;
  const auto number = static_cast<std::uint64_t>(self);
  if (number >= lines) return true;
  const DeviceAddress mine = page + GpuCard::probe_bytes + line * number;
  Probe written = pattern(seed + number);
  Probe back{};
  copy(driver_, device_, mine, address_of(written.data()), line);
  copy(driver_, device_, address_of(back.data()), mine, line);
  return std::equal(back.begin(), back.begin() + line, written.begin());
}

std::byte* CudaIpc::place(int rank, std::uint64_t offset) const {
  const DeviceMemory& memory = rank < 0 ? *own_ : *others_.at(rank).memory;
  return reinterpret_cast<std::byte*>(driver_.in_kernels(device_, memory.address() + offset));
}

int CudaIpc::device_beside(int rank) const {
  const auto found = others_.find(rank);
  return found == others_.end() ? -1 : found->second.device_beside;
}

}  // namespace khoro
