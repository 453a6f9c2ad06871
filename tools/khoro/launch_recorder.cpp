// SPDX-License-Identifier: Apache-2.0
#include "launch_recorder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <algorithm>
#include <span>

#include "base/error.h"
#include "base/packet_socket.h"
#include "base/process_stat.h"
#include "base/shared_memory.h"

namespace khoro::tool {
namespace {

/// What is mapped at most: more communicators than that are not recorded.
constexpr std::size_t most_pages = 16'384;
constexpr int packets_at_once = 64;
constexpr std::size_t most_reported = 3;

ProcessState state_of(pid_t process, std::uint64_t started) noexcept {
  const auto stat = stat_of(process);
  if (!stat || stat->ended() || stat->started != started) return ProcessState::ended;
  return stat->stopped() ? ProcessState::stopped : ProcessState::runs;
}

}  // namespace

/// The first pages of a rank's memory, which last as long as they are mapped somewhere.
class FlightRecorder::Page {
 public:
  /// Null for what is no rank page of this version.
  static std::shared_ptr<const Page> open(int memory) {
    try {
      check_shared_memory(memory, sizeof(RankPage), "the memory of a rank");
    } catch (const Error&) {
      return nullptr;
    }
    void* address = ::mmap(nullptr, sizeof(RankPage), PROT_READ, MAP_SHARED, memory, 0);
    if (address == MAP_FAILED) return nullptr;
    std::shared_ptr<const Page> page(new Page(static_cast<const RankPage*>(address)));
    return page->get().identity().magic == RankPage::magic_word ? page : nullptr;
  }
  ~Page() { ::munmap(const_cast<RankPage*>(page_), sizeof(RankPage)); }
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;

  const RankPage& get() const noexcept { return *page_; }

 private:
  explicit Page(const RankPage* page) : page_(page) {}
  const RankPage* page_;
};

FlightRecorder::FlightRecorder(const Key& key) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0)
    throw_errno("cannot open the socket of the flight recorder");
  ours_ = Descriptor(ends[0]);
  theirs_ = Descriptor(ends[1]);
  // A rank knows by this name that the number it inherited is still this socket.
  name_socket(ours_, recorder_name(key));
  if (::fcntl(theirs_.number(), F_SETFD, 0) != 0)
    throw_errno("cannot pass on the socket of the flight recorder");
}

void FlightRecorder::take() {
  for (int count = 0; count < packets_at_once; ++count) {
    RecorderPacket packet;
    std::vector<Descriptor> descriptors;
    switch (receive_packet(ours_, std::as_writable_bytes(std::span(&packet, 1)), descriptors, 1)) {
      case PacketStatus::done:
        take(packet, descriptors);
        break;
      case PacketStatus::exhausted:
      case PacketStatus::malformed:
        break;  // a rank that is not recorded
      case PacketStatus::again:
      case PacketStatus::closed:
        return;
    }
  }
}

void FlightRecorder::take(const RecorderPacket& packet, std::vector<Descriptor>& descriptors) {
  if (packet.version != RecorderPacket::current_version || packet.ranks < 1 ||
      static_cast<std::size_t>(packet.ranks) > most_pages || packet.rank < 0 ||
      packet.rank >= packet.ranks)
    return;
  if (packet.kind == RecorderPacket::joined && descriptors.size() == 1)
    join(packet, descriptors.front());
  if (packet.kind == RecorderPacket::failed && !failure_) {
    const std::size_t length = std::min<std::size_t>(packet.length, packet.words.size());
    failure_ = Failure{packet.communicator, packet.rank, packet.cause(),
                       std::string(packet.words.data(), length)};
  }
  if (packet.kind == RecorderPacket::left) leave(packet);
  sweep();
}

/// Who left in order has said so on its page; who has not never came to make a call.
void FlightRecorder::leave(const RecorderPacket& packet) {
  const auto communicator = communicators_.find(packet.communicator);
  if (communicator == communicators_.end()) return;
  auto& members = communicator->second.members;
  const auto member = members.find(packet.rank);
  if (member == members.end() || member->second.page->get().closed()) return;
  members.erase(member);
  --pages_;
}

void FlightRecorder::join(const RecorderPacket& packet, const Descriptor& memory) {
  if (pages_ >= most_pages) return;
  auto page = Page::open(memory.number());
  if (!page) return;
  const auto stat = stat_of(packet.pid);
  Recorded& recorded = communicators_[packet.communicator];
  if (recorded.number == 0) recorded.number = ++appeared_;
  recorded.ranks = std::max(recorded.ranks, packet.ranks);
  const Member member{packet.pid, stat ? stat->started : 0, std::move(page)};
  pages_ += recorded.members.insert_or_assign(packet.rank, member).second ? 1 : 0;
}

/// Lets go of communicators that all have left, for their memory lives as long as it is mapped. The
/// one that failed is kept for the report.
void FlightRecorder::sweep() {
  const auto all_left = [&](const auto& entry) {
    if (failure_ && !reported_ && failure_->communicator == entry.first) return false;
    const auto& members = entry.second.members;
    const bool left = std::all_of(members.begin(), members.end(), [](const auto& member) {
      return member.second.page->get().closed();
    });
    if (left) pages_ -= members.size();
    return left;
  };
  std::erase_if(communicators_, all_left);
}

std::vector<Sighting> FlightRecorder::look_at(const Recorded& recorded, const Ends& ends,
                                              States& states) const {
  std::vector<Sighting> seen;
  for (const auto& [rank, member] : recorded.members) {
    const auto [state, is_new] = states.try_emplace(member.pid, ProcessState::runs);
    if (is_new) state->second = state_of(member.pid, member.started);
    Sighting& sighting = seen.emplace_back();
    sighting.rank = rank;
    sighting.pid = member.pid;
    sighting.page = &member.page->get();
    sighting.process = state->second;
    if (sighting.process == ProcessState::ended) sighting.end = ends(member.pid);
  }
  return seen;
}

std::vector<FlightRecorder::Account> FlightRecorder::accounts(const Ends& ends) const {
  std::vector<Account> accounts;
  States states;
  for (const auto& [communicator, recorded] : communicators_) {
    Account& account = accounts.emplace_back();
    account.number = recorded.number;
    account.ranks = recorded.ranks;
    std::optional<Cause> cause;
    if (failure_ && failure_->communicator == communicator) {
      account.failure = failure_;
      cause = failure_->cause;
    }
    account.members = account_for(look_at(recorded, ends, states), cause);
  }
  std::sort(accounts.begin(), accounts.end(),
            [](const Account& a, const Account& b) { return a.number < b.number; });
  return accounts;
}

std::vector<std::string> FlightRecorder::report(Shown shown, const Ends& ends) {
  reported_ = true;
  std::vector<Account> accounts = this->accounts(ends);
  const auto nothing_wrong = [shown](const Account& account) {
    return shown == Shown::failed && !account.failure &&
           std::none_of(account.members.begin(), account.members.end(),
                        [](const RankAccount& rank) { return rank.verdict == RankVerdict::dead; });
  };
  std::erase_if(accounts, nothing_wrong);
  std::stable_partition(accounts.begin(), accounts.end(),
                        [](const Account& account) { return account.failure.has_value(); });
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < std::min(accounts.size(), most_reported); ++i) {
    const Account& account = accounts[i];
    const auto groups = group(account.members);
    lines.push_back(fmt::format("report of communicator {}, {} rank{}: {}", account.number,
                                account.ranks, account.ranks == 1 ? "" : "s", headline(groups)));
    for (const std::string& line : lines_of(groups)) lines.push_back("  " + line);
    if (account.failure)
      lines.push_back(fmt::format("  first told by rank {}: {}", account.failure->rank,
                                  account.failure->words));
  }
  if (accounts.size() > most_reported)
    lines.push_back(
        fmt::format("and {} more communicators like these", accounts.size() - most_reported));
  return lines;
}

}  // namespace khoro::tool
