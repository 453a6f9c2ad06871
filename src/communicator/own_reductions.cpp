// SPDX-License-Identifier: Apache-2.0
#include "communicator/own_reductions.h"

#include <atomic>
#include <utility>

#include "base/error.h"

namespace khoro {

std::uint32_t OwnReductions::add(OwnReduction reduction) {
  static std::atomic<std::uint32_t> next{first};
  constexpr std::uint32_t end = 1u << 31;
  auto made = std::make_shared<const OwnReduction>(std::move(reduction));
  if (next.load(std::memory_order_relaxed) >= end)
    throw Error(Code::invalid_usage, "this process has made 2^31 reductions; make them once");
  const std::uint32_t number = next.fetch_add(1, std::memory_order_relaxed);
  const std::scoped_lock lock(mutex_);
  all_.emplace(number, std::move(made));
  return number;
}

std::shared_ptr<const OwnReduction> OwnReductions::find(std::uint32_t number) const {
  const std::scoped_lock lock(mutex_);
  const auto place = all_.find(number);
  return place == all_.end() ? nullptr : place->second;
}

bool OwnReductions::remove(std::uint32_t number) {
  const std::scoped_lock lock(mutex_);
  return all_.erase(number) > 0;
}

}  // namespace khoro
