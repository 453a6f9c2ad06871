// SPDX-License-Identifier: Apache-2.0
// What a meeting does once its ranks are seated: compare, distribute, complete, fail.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "rendezvous/meeting.h"

namespace khoro {
namespace {

using namespace std::chrono_literals;

/// Descriptors under way count against a limit of the user: keep them few.
constexpr std::size_t most_in_flight = 250;
constexpr Duration pause_between_sends = 10ms;

std::string_view take_line(std::string_view& text) {
  auto end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

}  // namespace

std::set<int> Meeting::missing() const {
  std::set<int> absent;
  for (int rank = 0; rank < ranks_; ++rank)
    if (!seated_.count(rank)) absent.insert(rank);
  return absent;
}

std::optional<Meeting::Failure> Meeting::disagreement(const Visitor& visitor) const {
  if (seated_.empty()) return {};
  const Visitor& other = *seated_.begin()->second;
  if (visitor.ranks != ranks_)
    return Failure{
        Code::invalid_argument,
        fmt::format("rank {} was told that there are {} ranks, rank {} that there are {}",
                    other.rank, ranks_, visitor.rank, visitor.ranks)};
  std::string_view mine = visitor.text, theirs = other.text;
  while (!mine.empty() || !theirs.empty()) {
    std::string_view here = take_line(mine), there = take_line(theirs);
    if (here == there) continue;
    auto value = [](std::string_view line) {
      auto equals = line.find('=');
      return printable(equals == line.npos ? line : line.substr(equals + 1));
    };
    std::string_view named = here.empty() ? there : here;
    return Failure{Code::mismatch,
                   fmt::format("{} is '{}' on rank {} and '{}' on rank {}; it must be the same on "
                               "all ranks",
                               printable(named.substr(0, named.find('='))), value(there),
                               other.rank, value(here), visitor.rank)};
  }
  return {};
}

void Meeting::distribute(Time now) {
  send_again_at_ = never;
  for (auto& [rank, visitor] : seated_) {
    bool wants_more = visitor->next_member < seated_.size() && visitor->in_flight == 0;
    if (!wants_more || visitor->blocked || !visitor->outgoing.empty()) continue;
    if (in_flight_ > 0 && in_flight_ + most_descriptors_of_rank * most_records > most_in_flight)
      return;
    if (!send_members(*visitor, now)) return;
  }
}

/// False when nobody can be sent anything now, or the visitor was lost.
bool Meeting::send_members(Visitor& visitor, Time now) {
  MemberRecord records[most_records];
  std::vector<int> descriptors;
  std::set<std::uint64_t> processes{visitor.introduction.process};
  std::size_t count = 0, index = 0;
  for (auto& [rank, member] : seated_) {
    const Introduction& shown = member->introduction;
    bool first_of_process = processes.insert(shown.process).second;
    if (index++ < visitor.next_member) continue;
    if (count == most_records) break;
    MemberRecord& record = records[count++];
    record = {static_cast<std::uint32_t>(rank), 0, shown.process, shown.address};
    auto add = [&](HasDescriptor bit, const Descriptor& descriptor) {
      if (!descriptor) return;
      record.descriptors |= bit;
      descriptors.push_back(descriptor.number());
    };
    if (member == &visitor) continue;
    add(has_memory, shown.memory);
    add(has_doorbell, shown.doorbell);
    if (first_of_process) {
      add(has_pidfd, shown.pidfd);
      add(has_arena, shown.arena);
    }
    if (shown.process != visitor.introduction.process) add(has_gpu_memory, shown.gpu_memory);
  }
  Frame frame = Frame::make(FrameKind::members);
  frame.length = static_cast<std::uint16_t>(count * sizeof(MemberRecord));
  std::memcpy(frame.payload.data(), records, frame.length);
  switch (send_packet(visitor.socket, std::as_bytes(std::span(&frame, 1)), descriptors)) {
    case PacketStatus::done:
      visitor.next_member += count;
      // Counts one more than it is, so that a frame without descriptors is acknowledged too.
      visitor.in_flight = descriptors.size() + 1;
      in_flight_ += visitor.in_flight;
      return true;
    case PacketStatus::again:
    case PacketStatus::exhausted:
      send_again_at_ = now + pause_between_sends;
      return false;
    default:
      left(visitor, now);
      return false;
  }
}

void Meeting::complete(Time now) {
  phase_ = Phase::closing;
  deadline_ = never;
  pause_listening();
  listener_ = Descriptor();
  for (auto& [number, visitor] : visitors_) {
    if (visitor->stage == Visitor::Stage::seated)
      visitor->outgoing.push_back(Frame::make(FrameKind::complete));
    if (visitor->stage != Visitor::Stage::gone) leave_soon(*visitor, now);
  }
}

void Meeting::fail(Failure failure, Time now) {
  if (phase_ != Phase::gathering && phase_ != Phase::distributing) return;
  phase_ = Phase::failed;
  failure_ = std::move(failure);
  deadline_ = now + linger;
  send_again_at_ = never;
  for (auto& [number, visitor] : visitors_)
    if (visitor->stage == Visitor::Stage::seated) tell(*visitor, now);
}

void Meeting::tell(Visitor& visitor, Time now) {
  told_.insert(visitor.rank);
  queue_failure(visitor, failure_.code, failure_.text);
  leave_soon(visitor, now);
}

}  // namespace khoro
