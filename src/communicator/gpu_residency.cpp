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

void GpuResidency::find_places(const Launch& launch) {
  if (places_ != 0 && launch.shared_bytes <= block_bytes_) return;
  block_bytes_ = std::max(block_bytes_, launch.shared_bytes);
  places_ = launch.kernel->resident_blocks(launch.threads, block_bytes_);
}

int GpuResidency::shared() const noexcept {
  int blocks = 0;
  for (const auto& [communicator, share] : shares_) blocks += share.blocks;
  return blocks;
}

int GpuResidency::most_needed(bool when_ended) const noexcept {
  int blocks = 0;
  for (const Member* each : alone_) blocks = std::max(blocks, each->needs(when_ended));
  return blocks;
}

int GpuResidency::running_beside(const Member* one) const noexcept {
  int blocks = 0;
  for (const Member* each : alone_)
    if (each != one) blocks += each->widest_;
  return blocks;
}

int GpuResidency::needed_beside(const Member* one, bool when_ended) const noexcept {
  int blocks = 0;
  for (const Member* each : alone_)
    if (each != one) blocks += std::max(each->needs(when_ended), 1);
  return blocks;
}

void GpuResidency::forget_ended() noexcept {
  for (Member* each : alone_) {
    if (each->entered_ != 0 || (each->ended_ && runs(*each->ended_))) continue;
    each->ended_.reset();
    each->widest_ = 0;
  }
}

std::vector<std::shared_ptr<DeviceEvent>> GpuResidency::await_others(
    const Member* one, std::uint64_t number, std::unique_lock<std::mutex>& lock) {
  launched_.wait(lock, [&] {
    return std::none_of(alone_.begin(), alone_.end(), [&](const Member* each) {
      return each != one && each->entered_ != 0 && each->entered_ < number;
    });
  });
  std::vector<std::shared_ptr<DeviceEvent>> ends;
  for (const Member* each : alone_)
    if (each != one && each->ended_) ends.push_back(each->ended_);
  return ends;
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

GpuResidency::Member::Grant GpuResidency::Member::share(int blocks, int least) {
  GpuResidency& all = *residency_;
  int& mine = all.shares_[communicator_].blocks;
  const int others = all.shared() - mine;
  // What it has once it keeps; half of what is left is for others that may come.
  const auto most = [&] {
    return std::max(mine, (all.places_ - others - all.most_needed(false)) / 2) / ranks_;
  };
  if (blocks > most()) all.forget_ended();
  const int granted = std::max(least, std::min(blocks, most()));
  const int kept = others + all.most_needed(true);
  if (kept + granted * ranks_ > all.places_) all.refuse(granted, ranks_, kept);
  mine = std::max(mine, granted * ranks_);
  const auto fits = [&] { return all.shared() + all.running_beside(nullptr) <= all.places_; };
  if (!fits()) all.forget_ended();
  return {granted, !fits()};
}

GpuResidency::Member::Grant GpuResidency::Member::take_turn(int blocks, int least) {
  GpuResidency& all = *residency_;
  const int shared = all.shared(), places = all.places_ - shared;
  if (least > places) all.refuse(least, ranks_, shared);
  // Most often there is room for all, and none is asked whether it still runs.
  if ((places - all.needed_beside(this, false)) / 2 < blocks) all.forget_ended();
  const bool waits = places - all.running_beside(this) < least;
  const int spare = (places - all.needed_beside(this, waits)) / 2;
  const int granted = std::clamp(blocks, least, std::max(least, spare));
  least_ = std::max(least_, least);
  widest_ = std::max(widest_, granted);
  return {granted, waits};
}

GpuResidency::Turn GpuResidency::Member::enter(const Launch& launch, int least,
                                               DeviceStream& stream) {
  if (launch.blocks == 0) return {0, nullptr};
  GpuResidency& all = *residency_;
  std::unique_lock lock(all.mutex_);
  all.find_places(launch);
  const bool alone = ranks_ == 1;
  const Grant grant = alone ? take_turn(launch.blocks, least) : share(launch.blocks, least);
  const std::uint64_t number = ++all.entered_;
  if (alone) entered_ = number;
  if (grant.waits) {
    const auto ends = all.await_others(this, number, lock);
    lock.unlock();  // a stream that is full blocks
    try {
      for (const auto& end : ends) stream.wait(*end);
    } catch (...) {
      if (alone) launched(nullptr);
      throw;
    }
  }
  return {grant.blocks, alone ? this : nullptr};
}

void GpuResidency::Member::launched(std::shared_ptr<DeviceEvent> ended) noexcept {
  const std::lock_guard lock(residency_->mutex_);
  if (ended) ended_ = std::move(ended);
  entered_ = 0;
  residency_->launched_.notify_all();
}

}  // namespace khoro
