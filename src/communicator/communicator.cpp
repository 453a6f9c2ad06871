// SPDX-License-Identifier: Apache-2.0
#include "communicator/communicator.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/thread.h"
#include "communicator/process.h"
#include "communicator/residents.h"

namespace khoro {
namespace {

/// A peer that takes nothing in for so long may lose what this rank has sent it last.
constexpr Duration most_to_drain = std::chrono::seconds(10);

/// No call that was found good has it.
constexpr Reduction no_reduction{255};

/// A transport whose messages are shown, if anything is shown when the communicator is made: a
/// transport that tells costs each message something, also when nobody listens.
std::unique_ptr<Transport> traced(std::unique_ptr<Transport> transport, Timeline& timeline,
                                  const System& system) {
  if (!TraceFile::wanted()) return transport;
  return make_trace(std::move(transport), [&timeline, &system](const TraceEvent& event) {
    if (TraceFile::wanted()) timeline.message(event, system.now());
  });
}

}  // namespace

Communicator::Communicator(Parts parts)
    : page_(parts.page),
      identity_(parts.identity),
      system_(parts.system),
      doorbell_(parts.doorbell),
      patience_(parts.patience),
      deadline_(std::chrono::milliseconds(parts.settings.deadline_ms)),
      anchors_(std::move(parts.anchors)),
      witness_(std::move(parts.witness)),
      peers_(std::move(parts.peers)),
      timeline_({identity_, peers_->rank(), peers_->ranks()}),
      transport_(traced(std::move(parts.transport), timeline_, *system_)),
      channels_(*transport_, shape_of(parts.settings, peers_->ranks())),
      plans_(peers_->rank(), peers_->ranks(), parts.settings, channels_),
      gpu_(std::move(parts.gpu)),
      sends_(peers_->ranks()),
      recvs_(peers_->ranks()),
      mailboxes_(peers_->ranks()),
      tag_buffer_(parts.settings.tag_buffer) {
  Residents::of_process().add(*this);
}

Communicator::~Communicator() {
  if (gpu_) drain_gpu();
  watching_.reset();
  log_memory();
  compare_histories();
  Residents::of_process().remove(*this);
  close();
}

void Communicator::close() {
  if (!stopped()) transport_->drain(*system_, most_to_drain);
  page_->close();
  peers_->ring();
}

void Communicator::finalize() {
  if (stopped()) throw_cause();
  if (gpu_) drain_gpu();
  close();
}

Communicator::Held Communicator::held() const noexcept {
  Held held{channel_area_offset, transport_->bytes_held(), plans_.scratch_bytes(),
            kept_bytes_.load(std::memory_order_relaxed), 0};
  if (gpu_) {
    held.channels += gpu_->channel_bytes();
    held.partials += gpu_->scratch_bytes();
    held.programs = gpu_->program_bytes();
  }
  return held;
}

Communicator::Statistics Communicator::statistics() const {
  return {page_->calls(), held(), transport_->bytes_sent(),
          gpu_ ? gpu_->channels().transports() : std::string(transport_->name()),
          transport_->bytes_by_stripe()};
}

void Communicator::log_transports() const {
  if (gpu_) gpu_->channels().log_transports();
}

void Communicator::log_memory() const noexcept {
  if (!logs(LogLevel::info)) return;
  const Held all = held();
  log(LogLevel::info,
      "rank {}: held {} bytes at its end: {} for records, {} for channels, {} for partial results, "
      "{} for messages with tags, {} for programs of GPUs",
      rank(), all.all(), all.records, all.channels, all.partials, all.kept, all.programs);
}

void Communicator::run(const Call& call) {
  struct Single {
    Communicator& communicator;
    Operation& operation;
    Progress advance() noexcept { return communicator.advance(operation); }
    bool examine(Time now) noexcept {
      Operation* const all[] = {&operation};
      return communicator.examine(all, now);
    }
    bool stopped() const noexcept { return communicator.stopped(); }
    Time wake_by(Time now) const noexcept { return communicator.wake_by(operation, now); }
    std::span<const Doorbell> doorbells() const noexcept { return {&communicator.doorbell_, 1}; }
  };
  if (on_gpu(call)) return run_on_gpu(call);
  if (gpu_) drain_gpu();  // calls end in their order, and one thread looks at them
  Operation operation;
  begin(operation, call);
  Single single{*this, operation};
  drive(single, *system_, patience_);
  if (!stopped()) return finish(operation);
  leave();
  settle();
  throw_cause();
}

void Communicator::begin(Operation& operation, const Call& call) {
  // Said before poison is looked at: pairs with the barrier of settle().
  under_way_.store(static_cast<std::uint64_t>(call.signature.kind), std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  ++open_;
  if (stopped()) {
    leave();
    throw_cause();
  }
  operation.call = call;
  if (TraceFile::wanted()) trace_begin(operation);
  try {
    if (call.signature.point_to_point())
      begin_point_to_point(operation);
    else
      begin_collective(operation);
  } catch (const std::exception&) {
    poison_by_handled(call);
    leave();
    throw_cause();
  }
}

void Communicator::look_up(const Call& call) {
  const Signature& signature = call.signature;
  last_.plan = &(on_gpu(call) ? gpu_->plans() : plans_).find(signature, call.own);
  last_.plan_hash = last_.plan->plan_hash;
  if (signature.reduction == Reduction::user)
    last_.plan_hash = combine(last_.plan_hash, call.own->name_hash);
  last_.digest_base =
      combine(combine(combine(identity_, signature.word()), signature.count), last_.plan_hash);
  // The next call with this signature may have a reduction made otherwise: it is like none.
  last_.signature = signature;
  if (call.own) last_.signature.reduction = no_reduction;
}

void Communicator::begin_collective(Operation& operation) {
  const Signature& signature = operation.call.signature;
  if (!last_.plan || signature != last_.signature) look_up(operation.call);
  thread_ = line_ != 0 ? line_ : current_thread();
  operation.number = ++calls_;
  under_way_.store(static_cast<std::uint64_t>(signature.kind) | operation.number << 8,
                   std::memory_order_relaxed);
  page_->begin(record_of(operation));
  if (signature.moves_nothing()) return;
  operation.execution = last_.plan->execution.get();
  operation.execution->start(arguments_of(operation, digest(last_.digest_base, operation.number)));
}

Communicator::Port& Communicator::port(int peer, bool sends) {
  Port& port = port_numbers(peer, sends);
  if (!port.execution) port.execution = plans_.make_port(peer, sends, plain_messages);
  return port;
}

Communicator::Port& Communicator::port_numbers(int peer, bool sends) {
  Port& port = (sends ? sends_ : recvs_)[peer];
  if (port.pair == 0) {
    const std::uint64_t from = sends ? rank() : peer;
    const std::uint64_t to = sends ? peer : rank();
    port.pair = combine(combine(identity_, from << 32 | to), hash_text("point to point"));
  }
  return port;
}

std::uint64_t Communicator::digest_base(Port& port, const Signature& signature) noexcept {
  if (signature != port.signature) {
    const auto dtype = static_cast<std::uint64_t>(signature.dtype);
    port.signature = signature;
    port.digest_base = combine(combine(port.pair, dtype), signature.count);
  }
  return port.digest_base;
}

void Communicator::begin_point_to_point(Operation& operation) {
  if (operation.call.tag != 0) return begin_tagged(operation);
  const Signature& signature = operation.call.signature;
  Port& port = this->port(signature.peer, signature.kind == CallKind::send);
  operation.number = ++port.number;
  under_way_.store(static_cast<std::uint64_t>(signature.kind) | operation.number << 8,
                   std::memory_order_relaxed);
  operation.execution = port.execution.get();
  thread_ = line_ != 0 ? line_ : current_thread();
  operation.place = page_->begin_message({operation.number, signature, 0, thread_});
  if (open_ == 1) page_->older_messages_ended();
  operation.execution->start(
      arguments_of(operation, digest(digest_base(port, signature), operation.number)));
}

void Communicator::finish(const Operation& operation) noexcept {
  if (TraceFile::wanted()) trace_finish(operation);
  if (--open_ == 0) under_way_.store(idle, std::memory_order_release);
  const Signature& signature = operation.call.signature;
  if (!signature.point_to_point()) return page_->finish(operation.number);
  page_->finish_message(operation.place, operation.call.tag);
}

void Communicator::leave() noexcept {
  if (TraceFile::wanted()) timeline_.give_up(system_->now());
  if (!transport_->withdraw())
    log(LogLevel::error,
        "rank {}: no memory to move what other ranks may still write to; do not use the buffers of "
        "the failed call before those ranks have ended",
        rank());
  open_ = 0;
  under_way_.store(idle, std::memory_order_release);
}

// Out of the way of calls that nobody looks at.
[[gnu::cold, gnu::noinline]] void Communicator::trace_begin(const Operation& operation) noexcept {
  timeline_.begin(operation, system_->now());
}

[[gnu::cold, gnu::noinline]] void Communicator::trace_finish(const Operation& operation) noexcept {
  const bool planned = !operation.call.signature.point_to_point() && last_.plan->algorithm;
  timeline_.finish(operation, planned ? last_.plan->algorithm->name : std::string_view(),
                   system_->now());
}

bool Communicator::settled() const noexcept {
  bool busy = false;
  Residents::of_process().visit_siblings(*this, [&busy](Communicator& sibling) {
    busy |= sibling.under_way_.load(std::memory_order_acquire) != idle;
  });
  return !busy;
}

void Communicator::settle() noexcept {
  // Every rank beside this one either sees that it is poisoned, or is seen to be in an operation.
  Process::self().fence_all_threads();
  const Time until = system_->now() + std::chrono::seconds(1);
  while (!settled() && system_->now() < until) system_->yield();
}

CallRecord Communicator::record_of(const Operation& operation) const noexcept {
  CallRecord record;
  record.number = operation.number;
  record.signature = operation.call.signature;
  record.plan_hash = last_.plan_hash;
  record.thread = thread_;
  record.tag = operation.call.tag;
  return record;
}

}  // namespace khoro
