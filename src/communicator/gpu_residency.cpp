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

int GpuResidency::most_alone() const noexcept {
  int blocks = 0;
  for (const Member* each : alone_) blocks = std::max({blocks, each->least_, each->widest_});
  return blocks;
}

GpuResidency::Others GpuResidency::beside(const Member& member) const noexcept {
  Others others;
  for (const Member* each : alone_) {
    if (each == &member) continue;
    others.run += each->widest_;
    others.all += each->widest_ > 0 ? each->widest_ : std::max(each->least_, 1);
  }
  return others;
}

void GpuResidency::look() noexcept {
  for (Member* each : alone_) {
    if (each->launches_ || (each->ended_ && runs(*each->ended_))) continue;
    each->ended_.reset();
    each->widest_ = 0;
  }
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
  const auto others = [&] { return all.shared() - mine + all.most_alone(); };
  // What it has once it keeps; half of what is left is for others that may come.
  const auto most = [&] { return std::max(mine, (all.places_ - others()) / 2) / ranks_; };
  if (blocks > most()) all.look();
  const int granted = std::max(least, std::min(blocks, most()));
  if (others() + granted * ranks_ > all.places_) all.refuse(granted, ranks_, others());
  mine = std::max(mine, granted * ranks_);
  return granted;
}

int GpuResidency::Member::take_turn(int blocks, int least, DeviceStream& stream,
                                    std::unique_lock<std::mutex>& lock) {
  GpuResidency& all = *residency_;
  const auto places = [&] {
    const int shared = all.shared();
    if (least > all.places_ - shared) all.refuse(least, ranks_, shared);
    return all.places_ - shared;
  };
  // Most often there is room for all, and none is asked whether it still runs.
  if ((places() - all.beside(*this).all) / 2 < blocks) all.look();
  Others others = all.beside(*this);
  if (places() - others.run < least) {
    // One that is being launched can be waited for once it has been.
    const auto launches = [](const Member* each) { return each->launches_; };
    all.launched_.wait(
        lock, [&] { return std::none_of(all.alone_.begin(), all.alone_.end(), launches); });
    for (const Member* each : all.alone_)
      if (each != this && each->ended_) stream.wait(*each->ended_);
    others = all.beside(*this);
    others.all -= std::exchange(others.run, 0);
  }
  const int granted = std::clamp(blocks, least, std::max(least, (places() - others.all) / 2));
  least_ = std::max(least_, least);
  widest_ = std::max(widest_, granted);
  launches_ = true;
  return granted;
}

GpuResidency::Turn GpuResidency::Member::enter(const Launch& launch, int least,
                                               DeviceStream& stream) {
  if (launch.blocks == 0) return {0, nullptr};
  std::unique_lock lock(residency_->mutex_);
  residency_->see(launch);
  if (ranks_ > 1) return {share(launch.blocks, least), nullptr};
  return {take_turn(launch.blocks, least, stream, lock), this};
}

void GpuResidency::Turn::end(std::shared_ptr<DeviceEvent> ended) noexcept {
  if (member_ == nullptr) return;
  GpuResidency& residency = *member_->residency_;
  const std::lock_guard lock(residency.mutex_);
  if (ended) member_->ended_ = std::move(ended);
  member_->launches_ = false;
  residency.launched_.notify_all();
  member_ = nullptr;
}

}  // namespace khoro
