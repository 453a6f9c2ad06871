// SPDX-License-Identifier: Apache-2.0
#include "communicator/residents.h"

#include <algorithm>

#include "communicator/communicator.h"

namespace khoro {

Residents& Residents::of_process() {
  static auto* const residents = new Residents;
  return *residents;
}

void Residents::add(Communicator& communicator) {
  const std::lock_guard lock(mutex_);
  const auto sibling = std::find_if(all_.begin(), all_.end(), [&](const Communicator* each) {
    return each->identity() == communicator.identity();
  });
  communicator.count_as(sibling == all_.end() ? ++made_ : (*sibling)->ordinal());
  all_.push_back(&communicator);
}

void Residents::remove(Communicator& communicator) noexcept {
  const std::lock_guard lock(mutex_);
  all_.erase(std::remove(all_.begin(), all_.end(), &communicator), all_.end());
}

template <class Visit>
void Residents::siblings(const Communicator& of, Visit&& visit) const noexcept {
  for (Communicator* each : all_)
    if (each != &of && each->identity() == of.identity() && of.beside(each->rank())) visit(*each);
}

void Residents::visit_siblings(const Communicator& of,
                               const std::function<void(Communicator&)>& visit) const noexcept {
  const std::lock_guard lock(mutex_);
  siblings(of, visit);
}

void Residents::visit_with_siblings(
    Communicator& of, const std::function<bool(Communicator&)>& visit) const noexcept {
  const std::lock_guard lock(mutex_);
  if (visit(of)) siblings(of, visit);
}

void Residents::visit_all(const std::function<void(Communicator&)>& visit) const noexcept {
  const std::lock_guard lock(mutex_);
  for (Communicator* each : all_) visit(*each);
}

}  // namespace khoro
