// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/settings.h"
#include "base/system.h"
#include "communicator/call.h"
#include "communicator/channel_table.h"
#include "communicator/cycle.h"
#include "communicator/gpu_side.h"
#include "communicator/mailbox.h"
#include "communicator/operation.h"
#include "communicator/own_reductions.h"
#include "communicator/peers.h"
#include "communicator/plan_table.h"
#include "communicator/poison.h"
#include "communicator/registrations.h"
#include "communicator/report.h"
#include "communicator/timeline.h"
#include "communicator/trace_file.h"
#include "communicator/wait.h"
#include "communicator/witness.h"
#include "transport/transport.h"

namespace khoro {

/// One rank's membership in a group of ranks: joins what decides (plans) to what moves bytes
/// (channels), and keeps the promises that every call and every wait makes.
///
/// The non-blocking core (begin, advance, examine, finish) reads no clock (but for the trace, if
/// there is one), starts no thread and
/// never sleeps, so a virtual world can step many ranks in one thread; run() drives it on the
/// machine. Thread-bound, except where a function says thread-safe.
class Communicator {
 public:
  struct Parts {
    /// The same on all ranks, unlike any other communicator's.
    std::uint64_t identity = 0;
    Settings settings;
    System* system = nullptr;
    /// This rank's own page and doorbell, in its shared memory.
    RankPage* page = nullptr;
    Doorbell doorbell;
    std::unique_ptr<Peers> peers;
    std::unique_ptr<Transport> transport;
    /// Null: buffers lie in memory of the host.
    std::unique_ptr<GpuSide> gpu;
    Patience patience;
    /// Is told of a failure; none if null.
    std::unique_ptr<Witness> witness;
    /// Whatever must outlive the rest: mappings, descriptors.
    std::shared_ptr<void> anchors;
  };

  explicit Communicator(Parts parts);
  /// Leaves in order: peers that still need this rank learn that it has left.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  /// Keeps what calls this communicator from other threads; dropped first when it ends.
  void keep(std::shared_ptr<void> watching) noexcept { watching_ = std::move(watching); }

  int rank() const noexcept { return peers_->rank(); }
  int ranks() const noexcept { return peers_->ranks(); }
  std::uint64_t identity() const noexcept { return identity_; }
  /// Counts the communicators of this process in the order in which it made them, from 1; its ranks
  /// of one communicator have the same. Set by Residents.
  int ordinal() const noexcept { return ordinal_; }
  void count_as(int ordinal) noexcept { ordinal_ = ordinal; }
  const Peers& peers() const noexcept { return *peers_; }
  /// Rank `rank` is in this process.
  bool beside(int rank) const noexcept { return peers_->same_process(rank); }
  System& system() const noexcept { return *system_; }
  const Patience& patience() const noexcept { return patience_; }
  const Doorbell& doorbell() const noexcept { return doorbell_; }
  // Thread-safe.
  OwnReductions& own_reductions() noexcept { return own_reductions_; }
  Registrations& registrations() noexcept { return registrations_; }

  /// Throws invalid_argument or invalid_usage, and leaves a record of the refusal for peers, if the
  /// call cannot be made. Poisons nothing. Adds to a call on a GPU what kernels see.
  void check(Call& call) {
    if (checked_.is_set && call.signature == checked_.signature) return check_buffers(call);
    check_new(call);
  }

  // On GPUs. Calls are those of a GPU's streams, and nothing of the core below is for them.

  /// Null where buffers lie in memory of the host.
  const GpuSide* gpu() const noexcept { return gpu_.get(); }
  /// Checked calls that begin together; one at least.
  struct GpuCalls {
    std::vector<Call> others;
    std::vector<std::pair<Call, Call>> to_itself;  // messages, both ends
    GpuSide::Flights prepared;
  };
  /// Begins calls, and gets all that they need, for which it may block. They are launched before
  /// others are prepared. Throws the first cause if the communicator is or gets poisoned.
  void prepare(GpuCalls& calls);
  /// Queues them on a stream of this rank's GPU; null: that of the communicator, for which the
  /// caller then waits by await_gpu(). Throws as prepare().
  void launch(GpuCalls& calls, DeviceStream* stream);
  /// Both.
  void launch(const Call& call, DeviceStream* stream) {
    GpuCalls calls{{call}, {}, {}};
    prepare(calls);
    launch(calls, stream);
  }
  /// Blocks until the calls on the communicator's own stream have finished. Throws as launch().
  void await_gpu();

  /// Makes a checked call and blocks until it has finished. Throws `Error`, the first cause, if the
  /// communicator is or gets poisoned.
  void run(const Call& call);

  // The core.

  /// Begins a checked call. One collective, and per peer one send and one receive, one send with a
  /// tag and one receive with each tag, may be under way at a time. Throws `Error`: the first cause
  /// if the communicator is poisoned, or why the call cannot be made, which poisons.
  void begin(Operation& operation, const Call& call);
  /// Does what can be done now. `failed`: the communicator is poisoned.
  Progress advance(Operation& operation) noexcept {
    if (!operation.execution) return advance_apart(operation);
    const Progress progress = operation.execution->advance();
    if (progress == Progress::failed) fail(operation);
    return progress;
  }
  /// Looks for reasons to stop waiting, after advance() of all operations that are under way said
  /// `waiting`: poison, peers' notices, mismatched calls, cycles, peers that left, deadlines.
  /// False: the communicator is poisoned.
  bool examine(std::span<Operation* const> operations, Time now) noexcept;
  /// When examine() must be called again although nothing moves.
  Time wake_by(const Operation& operation, Time now) const noexcept;
  /// Ends an operation that is done.
  void finish(const Operation& operation) noexcept;
  /// Gives up all operations, after a failure, and takes back what other processes were lent. Ranks
  /// of this process may still read what was lent to them: settle() comes before the caller has its
  /// buffers back.
  void leave() noexcept;
  /// Blocks, after leave(), until no rank of this process is in an operation of this communicator,
  /// so that none reads the buffers of this one any more. They have been told, so this is short; 1
  /// s at most.
  void settle() noexcept;
  /// One look of settle(), for who must not block: true once no rank of this process is in an
  /// operation. Looks count only after Process::fence_all_threads().
  bool settled() const noexcept;

  /// Says who makes the calls from now on: the worker of streams, in the name of `line`, or the
  /// threads of the caller (0), when the one hands the communicator to the other.
  void serve(std::uint64_t line) noexcept { line_ = line; }

  /// Ends this rank's calls in order, at once, since a call returns when all it needs to do is
  /// done; peers that still need it learn that it has left. Throws the first cause if the
  /// communicator is poisoned.
  void finalize();

  // Failure. All thread-safe.

  /// True once the communicator is poisoned: one load.
  bool stopped() const noexcept { return poison_.latched(); }
  /// Throws the first cause, once the caller may have the buffers of calls on GPUs back.
  /// Precondition: stopped().
  [[noreturn]] void throw_cause() const;
  /// Blocks until no kernel runs of a communicator of this process that has failed: it may read and
  /// write buffers of all ranks that are threads here. They have been told, so this is short; 10 s
  /// at most.
  static void settle_gpus() noexcept;
  /// The first cause, or success; looks at peers' notices.
  Code async_error() noexcept;
  /// Precondition: stopped().
  const std::string& cause_words() const noexcept { return poison_.message(); }
  /// Ends every wait in this communicator, here and on the other ranks.
  void abort() noexcept { stop(Code::aborted); }
  /// The same, in other words: it ends for all, and others are to be made from its ranks.
  void revoke() noexcept { stop(Code::revoked); }
  /// Fails because a thread has waited for `calls` queued calls as long as the deadline allows.
  void overdue(std::size_t calls) noexcept;
  /// A process was seen to end in which rank `peer` lived. No failure if the rank had left.
  void peer_ended(int peer) noexcept;
  /// Looks for what only shows beside the calls: peers' notices, and calls that did not match but
  /// could end because this rank's part in them needed nothing. Twice a second, by one thread.
  void look_at_peers() noexcept;
  /// The same for what ends calls on a GPU, which no thread waits in: notices, deadlines, kernels
  /// that failed. Ten times a second.
  void look_at_gpu() noexcept;

  /// Says at `info` how the ranks reach each other, once all of them are ready.
  void log_transports() const;

  /// Writes out what was recorded for the trace file. Thread-safe.
  void flush_trace() noexcept { timeline_.flush(); }

  /// Memory with pages behind it that this rank owns.
  struct Held {
    std::uint64_t records = 0;   // the rank page
    std::uint64_t channels = 0;  // messages on their way
    std::uint64_t partials = 0;  // partial results
    std::uint64_t kept = 0;      // messages with tags that are not received yet
    std::uint64_t programs = 0;  // of a GPU
    std::uint64_t all() const noexcept { return records + channels + partials + kept + programs; }
  };
  /// Thread-safe.
  Held held() const noexcept;

  struct Statistics {
    std::uint64_t collectives = 0;  // begun
    Held held;
    std::uint64_t bytes_sent = 0;
    std::string transports;
    std::vector<std::uint64_t> bytes_by_stripe;  // empty where there are no stripes
  };
  /// Thread-safe.
  Statistics statistics() const;

  /// Operations that begin from now on end within this. Thread-safe.
  void set_deadline(Duration deadline) noexcept {
    deadline_.store(deadline, std::memory_order_relaxed);
  }
  Duration deadline() const noexcept { return deadline_.load(std::memory_order_relaxed); }

 private:
  struct Port {
    std::unique_ptr<Execution> execution;
    std::uint64_t number = 0;
    std::uint64_t pair = 0;  // hash of the two ranks
    // Of its last message, for the next may be alike.
    Signature signature;
    std::uint64_t digest_base = 0;
  };

  void check_new(Call& call);
  void check_buffers(Call& call) {
    if (!checked_.extent.fits(call.buffers)) refuse_buffers(call);
    if (gpu_) reach_buffers(call);
  }
  void reach_buffers(Call& call);
  void check_on_gpu(const Call& call) const;
  bool on_gpu(const Call& call) const noexcept {
    return gpu_ && call.signature.kind != CallKind::split;
  }
  /// Adds a call to those that are to be launched together.
  void prepare(const Call& call, GpuSide::Flight& flight);
  /// Gives it its number, and says on the rank's page that it has begun.
  Operation begin_on_gpu(const Call& call, const GpuSide::Flight& flight);
  void show_under_way(const Operation& operation) noexcept;
  /// Of the call that begin_on_gpu() was last given.
  CallArguments arguments_now(Operation& operation);
  void run_on_gpu(const Call& call);
  /// Blocks until streams hold few enough calls.
  void make_room();
  /// Lets go of calls on the GPU that have ended.
  void reap() noexcept;
  /// Says of a launch that has not ended which of its calls have.
  void reap_passed(GpuSide::Flight& flight) noexcept;
  /// Fails because a kernel has: as the call that it was in.
  void fail_on_gpu(const gpu::Report& report) noexcept;
  void drain_gpu() noexcept;
  [[noreturn]] void refuse_buffers(const Call& call);
  void begin_collective(Operation& operation);
  void look_up(const Call& call);
  void begin_point_to_point(Operation& operation);
  Port& port(int peer, bool sends);
  Port& port_numbers(int peer, bool sends);
  std::uint64_t digest_base(Port& port, const Signature& signature) noexcept;
  void begin_tagged(Operation& operation);
  Mailbox& mailbox(int peer);
  Outbox& outbox(int peer);
  Inbox& inbox(int peer);
  TagChannel open_tag_channel(int peer, bool sends);
  /// Tells the peers that this rank has left, once all that it sent is on its way.
  void close();
  void log_memory() const noexcept;
  /// advance() of what has no execution.
  Progress advance_apart(Operation& operation) noexcept;
  Progress advance_tagged(Operation& operation) noexcept;
  /// Takes in messages with tags that a peer sends, for an operation that waits for that peer.
  Progress pump(const Operation& operation) noexcept;
  bool pump_beside(std::span<Operation* const> operations) noexcept;
  void open_inboxes(std::span<Operation* const> operations);
  void fail_tagged(const Operation& operation, Code fault) noexcept;
  /// Fails if the operation, one of those under way, waits for a message behind one that is held
  /// back.
  bool is_held_back(const Operation& operation, std::span<Operation* const> operations);
  void fail(const Operation& operation) noexcept;
  void fail(const Operation& operation, Status status, int peer) noexcept;
  void stop(Code code) noexcept;
  void poison(const Cause& cause, std::string message) noexcept;
  /// Of this rank's own, in the call that began last.
  void poison(const Error& error) noexcept;
  /// Poisons by the exception that is being handled, because of which the call cannot be made.
  void poison_by_handled(const Call& call);
  /// In the words of report.h.
  void poison(const Cause& cause) noexcept;
  void poison(Finding&& finding) noexcept { poison(finding.cause, std::move(finding.message)); }
  /// poison() without what it does to the other ranks of this process. False: another cause was
  /// first.
  bool latch(const Cause& cause, std::string message) noexcept;
  /// Fails as a peer has told; false if none has.
  bool hear() noexcept;
  void adopt(const Peers::Notice& notice) noexcept;
  void compare_histories() noexcept;
  /// What the records say of a mismatch that a peer has found.
  std::optional<Finding> found_again(const Cause& cause) const;
  /// An empty call ends at once, unless the slowest rank could no longer see its record.
  bool near_slowest(std::uint64_t number) noexcept;
  int slowest() const noexcept;
  int waited_for(const Operation& operation) const noexcept;
  /// Whom a call on the GPU needs: the other end of a message, else one that has not made the call;
  /// -1: none.
  int missing_peer(const Operation& operation) const noexcept;
  void start_waiting(Operation& operation, Time now) const noexcept;
  /// examine(), where there is memory for words.
  bool look(std::span<Operation* const> operations, Time now);
  bool peer_has_left(Operation& operation);
  /// Fails because a peer that the operation needs has left.
  void miss(const Operation& operation, int peer) noexcept;
  bool compare(std::span<Operation* const> operations, Time now);
  void time_out(const Operation& operation);
  std::optional<Finding> compare_records(const Operation& operation) const;
  bool look_for_cycle();
  void trace_begin(const Operation& operation) noexcept;
  void trace_finish(const Operation& operation) noexcept;
  void report_refusal(Operation& operation) const;
  void report_crossing(Operation& operation, Time now) const;
  void report_straggler(Operation& operation, Time now) const;
  /// In the call that began last; any thread.
  Cause cause_now(Code code, int culprit) const noexcept;
  CallRecord record_of(const Operation& operation) const noexcept;

  // In the order in which a call touches them.
  Poison poison_;
  static constexpr std::uint64_t idle = 0xff;
  static constexpr std::uint64_t has_tag = 0x40;
  std::atomic<std::uint64_t> under_way_{idle};  // kind | has_tag | number << 8
  std::atomic<std::uint32_t> tag_under_way_{0};
  int open_ = 0;  // operations begun and not ended
  std::uint64_t calls_ = 0;
  struct {
    Signature signature;
    Extent extent;
    bool is_set = false;
  } checked_;  // the last one whose arguments were found good
  struct {
    Signature signature;
    PlanTable::Entry* plan = nullptr;
    std::uint64_t plan_hash = 0;
    std::uint64_t digest_base = 0;
  } last_;
  RankPage* page_;
  std::uint64_t thread_ = 0;
  std::uint64_t line_ = 0;

  std::uint64_t near_until_ = 0;  // empty calls up to this number end at once
  Cycle suspected_;

  std::uint64_t identity_;
  int ordinal_ = 0;
  System* system_;
  Doorbell doorbell_;
  Patience patience_;
  std::atomic<Duration> deadline_;
  std::shared_ptr<void> anchors_;
  std::unique_ptr<Witness> witness_;
  std::unique_ptr<Peers> peers_;
  Timeline timeline_;
  std::unique_ptr<Transport> transport_;
  ChannelTable channels_;
  PlanTable plans_;
  OwnReductions own_reductions_;
  Registrations registrations_;
  std::unique_ptr<GpuSide> gpu_;
  std::vector<Port> sends_;  // by peer
  std::vector<Port> recvs_;
  std::atomic<std::uint64_t> kept_bytes_{0};         // by all inboxes
  std::vector<std::unique_ptr<Mailbox>> mailboxes_;  // by peer
  std::uint64_t tag_buffer_;                         // bytes that an inbox keeps at most
  bool tags_moved_ = false;                          // since peers were last told of being stuck
  bool pumped_ = false;                              // in the last look, beside an operation
  std::shared_ptr<void> watching_;
};

}  // namespace khoro
