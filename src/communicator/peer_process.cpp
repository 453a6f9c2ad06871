// SPDX-License-Identifier: Apache-2.0
#include "communicator/peer_process.h"

#include <map>
#include <utility>

#include "communicator/process.h"

namespace khoro {
namespace {

struct Table {
  std::mutex mutex;
  std::map<std::uint64_t, std::weak_ptr<PeerProcess>> processes;
};
Table& the_table() {
  static auto* const table =
      new Table;  // never destroyed: communicators may outlive static objects
  return *table;
}

}  // namespace

std::shared_ptr<PeerProcess> PeerProcess::of(Introduction& member) {
  Table& table = the_table();
  const std::lock_guard lock(table.mutex);
  std::erase_if(table.processes, [](const auto& entry) { return entry.second.expired(); });
  auto& known = table.processes[member.process];
  std::shared_ptr<PeerProcess> process = known.lock();
  if (!process) {
    process = std::make_shared<PeerProcess>(std::move(member.pidfd), std::move(member.doorbell));
    known = process;
  }
  return process;
}

PeerProcess::PeerProcess(Descriptor pidfd, Descriptor bell)
    : pidfd_(std::move(pidfd)), bell_(std::move(bell)), control_(Process::self().control()) {
  if (pidfd_) watch_ = control_->when_ended(pidfd_.number(), [this] { end(); });
}

void PeerProcess::end() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  for (const auto& callback : callbacks_) callback();
}

std::shared_ptr<void> PeerProcess::when_ended(std::shared_ptr<PeerProcess> process,
                                              std::function<void()> callback) {
  struct Registration {
    ~Registration() {
      const std::lock_guard lock(process->mutex_);
      process->callbacks_.erase(at);
    }
    std::shared_ptr<PeerProcess> process;
    std::list<std::function<void()>>::iterator at;
  };
  PeerProcess& self = *process;
  const std::lock_guard lock(self.mutex_);
  auto registration = std::make_shared<Registration>();
  registration->at = self.callbacks_.insert(self.callbacks_.end(), std::move(callback));
  registration->process = std::move(process);
  if (self.ended_) (*registration->at)();
  return registration;
}

}  // namespace khoro
