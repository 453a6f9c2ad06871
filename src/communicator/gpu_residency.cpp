// SPDX-License-Identifier: Apache-2.0
#include "communicator/gpu_residency.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace khoro {
namespace {

/// Whether the GPU still has to get there.
bool runs(const DeviceEvent& ended) noexcept {
  try {
    return !ended.complete();
  } catch (const Error&) {
    return false;  // it has failed, and runs nothing
  }
}

}  // namespace

std::shared_ptr<GpuResidency> GpuResidency::of(const Driver& driver, int device) {
  static auto* const mutex = new std::mutex;
  static auto* const known =
      new std::map<std::pair<const Driver*, int>, std::weak_ptr<GpuResidency>>;
  const std::lock_guard lock(*mutex);
  std::weak_ptr<GpuResidency>& mine = (*known)[{&driver, device}];
  std::shared_ptr<GpuResidency> residency = mine.lock();
  if (!residency) mine = residency = std::make_shared<GpuResidency>(driver, device);
  return residency;
}

GpuResidency::Member::Member(std::shared_ptr<GpuResidency> residency, std::uint64_t communicator,
                             int ranks)
    : residency_(std::move(residency)), communicator_(communicator), ranks_(ranks) {
  const std::lock_guard lock(residency_->mutex_);
  if (ranks_ > 1)
    ++residency_->shares_[communicator_].members;
  else
    residency_->alone_.push_back(this);
}

GpuResidency::Member::~Member() {
  const std::lock_guard lock(residency_->mutex_);
  if (ranks_ == 1) {
    auto& alone = residency_->alone_;
    alone.erase(std::find(alone.begin(), alone.end(), this));
    return;
  }
  const auto share = residency_->shares_.find(communicator_);
  if (--share->second.members == 0) residency_->shares_.erase(share);
}

void GpuResidency::see(const Launch& launch) {
  if (places_ != 0 && launch.shared_bytes <= block_bytes_) return;
  block_bytes_ = std::max(block_bytes_, launch.shared_bytes);
  places_ = launch.kernel->resident_blocks(launch.threads, block_bytes_);
}

int GpuResidency::shared() const noexcept {
  int blocks = 0;
  for (const auto& [communicator, share] : shares_) blocks += share.blocks;
  return blocks;
}

std::vector<const GpuResidency::Member*> GpuResidency::others_of(const Member& member) const {
  std::vector<const Member*> others;
  for (const Member* each : alone_)
    if (each != &member && each->ended_) others.push_back(each);
  return others;
}

int GpuResidency::blocks_of(const std::vector<const Member*>& members) noexcept {
  int blocks = 0;
  for (const Member* each : members) blocks += each->widest_;
  return blocks;
}

void GpuResidency::refuse(int blocks, int ranks, int others) const {
  throw Error(
      Code::invalid_usage,
      fmt::format("{} blocks of {} on {}, which runs {} at once{}", blocks,
                  ranks > 1 ? fmt::format("each of {} ranks", ranks) : "the rank",
                  driver_.facts(device_).name, places_,
                  others == 0 ? ""
                              : fmt::format(", and has to keep {} for other communicators of this "
                                            "process",
                                            others)));
}

int GpuResidency::Member::share(int blocks, int least) {
  GpuResidency& all = *residency_;
  int& mine = all.shares_[communicator_].blocks;
  int widest = 0;  // of those that take turns
  for (const Member* each : all.alone_) widest = std::max(widest, each->widest_);
  const int others = all.shared() - mine + widest;
  // What it has once it keeps; half of what is left is for others that may come.
  const int most = std::max(mine, (all.places_ - others) / 2) / ranks_;
  const int granted = std::max(least, std::min(blocks, most));
  if (others + granted * ranks_ > all.places_) all.refuse(granted, ranks_, others);
  mine = std::max(mine, granted * ranks_);
  return granted;
}

int GpuResidency::Member::take_turn(int blocks, int least, DeviceStream& stream) {
  GpuResidency& all = *residency_;
  const int shared = all.shared(), places = all.places_ - shared;
  if (least > places) all.refuse(least, ranks_, shared);
  // Most often there is room for all, and none is asked whether it still runs.
  std::vector<const Member*> others = all.others_of(*this);
  if (places - blocks_of(others) < blocks)
    others.erase(std::remove_if(others.begin(), others.end(),
                                [](const Member* each) { return !runs(*each->ended_); }),
                 others.end());
  int left = places - blocks_of(others);
  if (left < least) {
    for (const Member* each : others) stream.wait(*each->ended_);
    left = places;
  }
  const int granted = std::clamp(blocks, least, left);
  widest_ = std::max(widest_, granted);
  return granted;
}

GpuResidency::Turn GpuResidency::Member::enter(const Launch& launch, int least,
                                               DeviceStream& stream) {
  if (launch.blocks == 0) return Turn(0);
  std::unique_lock lock(residency_->mutex_);
  residency_->see(launch);
  if (ranks_ > 1) return Turn(share(launch.blocks, least));
  const int blocks = take_turn(launch.blocks, least, stream);
  return {blocks, this, std::move(lock)};
}

void GpuResidency::Turn::launched(std::shared_ptr<DeviceEvent> ended) noexcept {
  if (member_ == nullptr) return;
  member_->ended_ = std::move(ended);
  lock_.unlock();
}

}  // namespace khoro
