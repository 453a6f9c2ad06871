// SPDX-License-Identifier: Apache-2.0
#include "communicator/seat.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <map>
#include <new>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/interfaces.h"
#include "base/log.h"
#include "base/sleepers.h"
#include "communicator/channel_table.h"
#include "communicator/log_witness.h"
#include "communicator/peer_process.h"
#include "communicator/process.h"
#include "communicator/recorder.h"
#include "communicator/trace_file.h"
#include "transport/registry.h"

namespace khoro {
namespace {

/// Cores that this process may use.
int cores() noexcept {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return CPU_COUNT(&set);
}

/// What must live as long as the communicator.
struct Anchors {
  std::vector<Mapping> mappings;
  std::shared_ptr<void> sleepers;
  /// By their numbers; not this one.
  std::map<std::uint64_t, std::shared_ptr<PeerProcess>> processes;
  Stripes stripes;
  std::shared_ptr<Arena> arena;
  PeerArenas arenas;
};

/// A look at a socket is a system call, which takes as long as twenty looks at memory.
constexpr int spins_on_sockets = Patience().spins / 20;

/// The control thread, and what it looks at for one communicator.
struct Watching {
  std::shared_ptr<Control> control;
  Control::Watch looks, looks_at_gpu;  // dropped before it
  std::vector<std::shared_ptr<void>> ends;
};

/// Has the communicator look at its peers now and then, and told when a process ends in which ranks
/// of it live. Null if it has no peers.
std::shared_ptr<void> watch_peers(Communicator& communicator, const Membership& membership,
                                  const Anchors& anchors) {
  if (membership.members.size() < 2) return nullptr;
  auto watching = std::make_shared<Watching>(Watching{Process::self().control(), {}, {}, {}});
  watching->looks = watching->control->every(std::chrono::milliseconds(500),
                                             [&communicator] { communicator.look_at_peers(); });
  if (communicator.gpu())
    watching->looks_at_gpu = watching->control->every(
        std::chrono::milliseconds(100), [&communicator] { communicator.look_at_gpu(); });
  for (const auto& [number, process] : anchors.processes) {
    std::vector<int> ranks;
    for (const Introduction& each : membership.members)
      if (each.process == number) ranks.push_back(each.rank);
    watching->ends.push_back(
        PeerProcess::when_ended(process, [&communicator, ranks = std::move(ranks)] {
          for (int rank : ranks) communicator.peer_ended(rank);
        }));
  }
  return watching;
}

/// Who reports if the communicator fails: the launcher's flight recorder, or the log.
std::unique_ptr<Witness> witness_of(const Settings& settings, const Recorder::Member& member,
                                    int memory, const std::vector<RankPage*>& pages,
                                    const std::shared_ptr<Anchors>& anchors) {
  if (auto recorder = Recorder::of_launcher(settings, member)) {
    recorder->show(memory);
    return recorder;
  }
  std::vector<Sighting> ranks;
  for (const RankPage* page : pages) {
    Sighting& rank = ranks.emplace_back();
    rank.rank = page->identity().rank;
    rank.pid = page->identity().pid;
    rank.page = page;
  }
  return std::make_unique<LogWitness>(*pages.front(), std::move(ranks), anchors);
}

/// The private memory of a peer's process, if it is another one and may be read.
PeerMemory private_memory_of(const RankPage& page) {
  const RankPage::Identity& identity = page.identity();
  if (identity.process == Process::self().number()) return {};
  const PeerMemory memory{identity.pid, identity.number_at, identity.process};
  if (memory && memory.read(nullptr, 0, 0)) return memory;
  log(LogLevel::info, "messages of rank {} (pid {}) are copied: its memory cannot be read",
      identity.rank, identity.pid);
  return {};
}

/// The rank page of a peer, checked to be that of rank `rank`.
RankPage& page_of(const Introduction& peer, int ranks, const Mapping& mapping) {
  auto& page = *std::launder(reinterpret_cast<RankPage*>(mapping.bytes().data()));
  const RankPage::Identity& identity = page.identity();
  if (identity.magic != RankPage::magic_word || identity.rank != peer.rank ||
      identity.ranks != ranks || identity.process != peer.process)
    throw Error(Code::remote_error,
                fmt::format("the shared memory of rank {} is not that of rank {} of {} of this "
                            "version; run the same Khoro on every rank",
                            peer.rank, peer.rank, ranks));
  return page;
}

/// What wakes the sleepers of a peer in another process.
int bell_of(Introduction& peer, Anchors& anchors) {
  auto& process = anchors.processes[peer.process];
  if (!process) process = PeerProcess::of(peer);
  if (process->bell() < 0)
    throw Error(Code::remote_error,
                fmt::format("rank {} has shown nothing by which it could be woken; run the same "
                            "Khoro on every rank",
                            peer.rank));
  return process->bell();
}

}  // namespace

Seat::Seat(int rank, int ranks, const Settings& settings)
    : rank_(rank),
      ranks_(ranks),
      gpu_(settings.memory == "host" ? nullptr : std::make_unique<GpuSeat>(rank, ranks, settings)),
      area_bytes_(channel_bytes(settings, ranks)),
      memory_bytes_(channel_area_offset + area_bytes_ + (gpu_ ? gpu_->area_bytes() : 0)),
      memory_(make_shared_memory(fmt::format("khoro rank {}", rank), memory_bytes_)),
      sleepers_(Sleepers::of_process().keep()) {
  // Before the others learn of rank 0, so that it empties what they will fill.
  if (!settings.trace.empty()) TraceFile::of_process().open_first(settings.trace, rank == 0);
  RankPage::Identity identity;
  identity.process = Process::self().number();
  identity.rank = rank;
  identity.ranks = ranks;
  identity.pid = ::getpid();
  identity.number_at = reinterpret_cast<std::uintptr_t>(Process::self().number_at());
  const Mapping mapping =
      Mapping::open(memory_.number(), memory_bytes_, fmt::format("shared memory of rank {}", rank));
  new (mapping.bytes().data()) RankPage(identity);
  if (gpu_) gpu_->fill(mapping.bytes().subspan(channel_area_offset + area_bytes_));
  if (transport_of(settings).uses_sockets && ranks > 1) {
    stripes_ = static_cast<int>(settings.tcp_stripes);
    listener_ = listen_for_stripes(settings.socket_interfaces, settings.socket_family);
  } else if (!settings.socket_interfaces.empty()) {
    // A mistake in it shall not wait for the first job that needs a socket.
    usable_interfaces(interfaces_present(), settings.socket_interfaces, settings.socket_family);
  }
}

Introduction Seat::introduction() noexcept {
  Introduction mine;
  mine.rank = rank_;
  mine.process = Process::self().number();
  mine.memory = std::move(memory_);
  if (gpu_) mine.gpu_memory = gpu_->show();
  return mine;
}

int Seat::arena() noexcept {
  if (stripes_ > 0) return -1;
  arena_ = arena_to_share();
  return arena_ ? arena_->descriptor() : -1;
}

std::unique_ptr<Communicator> Seat::join(Membership& membership, Stripes stripes, PeerArenas arenas,
                                         const Settings& settings) {
  Communicator::Parts parts;
  auto anchors = std::make_shared<Anchors>();
  anchors->sleepers = sleepers_;
  std::vector<Peers::Member> members;
  std::vector<RankPage*> pages;
  std::vector<std::span<std::byte>> gpu_areas;
  TransportSetup setup{rank_, {}, channel_area_offset, area_bytes_};
  for (Introduction& peer : membership.members) {
    const Mapping& mapping = anchors->mappings.emplace_back(Mapping::open(
        peer.memory.number(), memory_bytes_, fmt::format("shared memory of rank {}", peer.rank)));
    gpu_areas.push_back(mapping.bytes().subspan(channel_area_offset + area_bytes_));
    RankPage& page = page_of(peer, ranks_, mapping);
    pages.push_back(&page);
    if (peer.rank == rank_) parts.page = &page;
    const bool beside = peer.process == Process::self().number();
    const Doorbell doorbell(page.doorbell(), beside ? -1 : bell_of(peer, *anchors));
    members.push_back({&page, doorbell, page.identity().pid, beside});
    setup.endpoints.push_back({peer.rank, peer.process, peer.memory.number(), doorbell, {}});
    Endpoint& endpoint = setup.endpoints.back();
    if (!stripes.empty()) {
      for (const Descriptor& stripe : stripes[static_cast<std::size_t>(peer.rank)])
        endpoint.sockets.push_back(stripe.number());
      continue;
    }
    if (const auto arena = arenas.find(peer.process); arena != arenas.end())
      endpoint.arena = arena->second.bytes();
    endpoint.private_memory = private_memory_of(page);
  }

  if (gpu_) parts.gpu = gpu_->join(membership, gpu_areas, settings);
  parts.identity = membership.communicator;
  parts.settings = settings;
  parts.system = &machine();
  setup.arena = arena_.get();
  parts.transport = transport_of(settings).make(setup);
  const Doorbell& own = members[static_cast<std::size_t>(rank_)].doorbell;
  parts.doorbell = Doorbell(*own.word(), -1, parts.transport->descriptor());
  parts.peers = std::make_unique<Peers>(rank_, std::move(members));
  if (parts.doorbell.besides() >= 0) parts.patience.spins = spins_on_sockets;
  if (ranks_ > cores()) parts.patience.spins = 0;
  anchors->stripes = std::move(stripes);
  anchors->arena = arena_;
  anchors->arenas = std::move(arenas);
  const int memory = membership.members[static_cast<std::size_t>(rank_)].memory.number();
  parts.witness = witness_of(settings, {parts.identity, rank_, ranks_}, memory, pages, anchors);
  parts.anchors = anchors;
  auto communicator = std::make_unique<Communicator>(std::move(parts));
  communicator->keep(watch_peers(*communicator, membership, *anchors));
  return communicator;
}

}  // namespace khoro
