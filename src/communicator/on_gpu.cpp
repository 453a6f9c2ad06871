// SPDX-License-Identifier: Apache-2.0
// Calls of a communicator on GPUs: they are queued on streams, and looked after until they have
// ended.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/thread.h"
#include "communicator/communicator.h"
#include "communicator/residents.h"

namespace khoro {
namespace {

/// No more are launched while streams hold so many calls. Their records stay on the page of the
/// rank meanwhile.
constexpr std::size_t most_queued = RankPage::ring / 2;

/// Kernels that are to end do so within a second, however busy the machine is.
constexpr std::chrono::seconds most_to_settle{10};

const Call& first_of(const Communicator::GpuCalls& calls) {
  return calls.others.empty() ? calls.to_itself.front().first : calls.others.front();
}

bool holds_no_message(const GpuSide::Flight& flight) {
  return std::none_of(
      flight.operations.begin(), flight.operations.end(),
      [](const Operation& operation) { return operation.call.signature.point_to_point(); });
}

}  // namespace

void Communicator::check_on_gpu(const Call& call) const {
  const Signature& signature = call.signature;
  const auto refuse = [&](const char* why) {
    throw Error(Code::invalid_usage,
                fmt::format("{} on GPUs: {}", describe(signature, call.tag), why));
  };
  if (call.tag != 0) refuse("messages have no tags there; use khoroSend and khoroRecv");
  if (signature.reduction == Reduction::user)
    refuse("kernels call no function of the caller; use a reduction of khoroRedOp_t");
}

void Communicator::reach_buffers(Call& call) {
  if (call.signature.kind == CallKind::split) return;
  try {
    const Extent& extent = checked_.extent;
    call.in_kernels = {};
    call.reached_by = ~DeviceSet{0};
    const auto reach = [&](const void* buffer, std::uint64_t bytes, const char* name) {
      const Reached reached = gpu_->reach(buffer, bytes, name);
      call.reached_by &= reached.devices;
      return reinterpret_cast<std::byte*>(reached.in_kernels);
    };
    if (extent.reads) call.in_kernels.input = reach(call.buffers.input, extent.input, "send");
    if (extent.writes)
      call.in_kernels.output = reach(call.buffers.output, extent.output, "receive");
  } catch (const Error& error) {
    page_->refuse(call.signature, call.tag);
    throw Error(error.code(), fmt::format("{}: {}", describe(call.signature), error.what()));
  }
}

void Communicator::prepare(GpuCalls& calls) {
  make_room();
  if (!stopped()) {
    const std::lock_guard lock(gpu_->mutex());
    const Call* current = &first_of(calls);
    try {
      calls.prepared = gpu_->take();
      GpuSide::Flight& flight = calls.prepared.front();
      thread_ = current_thread();
      for (const auto& [from, to] : calls.to_itself) {
        current = &from;
        CallArguments copy;
        copy.buffers = {from.in_kernels.input, to.in_kernels.output};
        copy.count = from.signature.count;
        copy.dtype = from.signature.dtype;
        copy.in_kernels = true;
        flight.calls.add_beside(gpu_->port(rank(), true), copy);
      }
      for (const Call& call : calls.others) {
        current = &call;
        prepare(call, flight);
      }
      flight.calls.allocate();
    } catch (const std::exception&) {
      poison_by_handled(*current);
    }
  }
  if (stopped()) throw_cause();
}

void Communicator::prepare(const Call& call, GpuSide::Flight& flight) {
  const Signature& signature = call.signature;
  Operation operation = begin_on_gpu(call, flight);
  if (signature.moves_nothing()) return;
  const CallArguments arguments = arguments_now(operation);
  if (signature.point_to_point())
    flight.calls.add_beside(gpu_->port(signature.peer, signature.kind == CallKind::send),
                            arguments);
  else
    operation.turn = flight.calls.add_in_turn(*last_.plan->on_gpu, arguments);
  // What the call borrowed is not looked at any more; of blocks reports name the lengths.
  operation.call.own = nullptr;
  flight.operations.push_back(std::move(operation));
}

void Communicator::launch(GpuCalls& calls, DeviceStream* stream) {
  if (!stopped()) {
    const std::lock_guard lock(gpu_->mutex());
    GpuSide::Flight& flight = calls.prepared.front();
    flight.awaited = stream == nullptr;
    if (!flight.operations.empty()) show_under_way(flight.operations.back());
    try {
      gpu_->launch(std::move(calls.prepared), stream ? *stream : gpu_->stream());
    } catch (const std::exception&) {
      poison_by_handled(first_of(calls));
    }
  }
  if (stopped()) throw_cause();
}

Operation Communicator::begin_on_gpu(const Call& call, const GpuSide::Flight& flight) {
  const Signature& signature = call.signature;
  Operation operation;
  operation.call = call;
  operation.on_gpu = true;
  if (signature.point_to_point()) {
    operation.number = ++port_numbers(signature.peer, signature.kind == CallKind::send).number;
  } else {
    if (!last_.plan || signature != last_.signature) look_up(call);
    operation.number = ++calls_;
  }
  show_under_way(operation);
  if (!signature.point_to_point()) {
    page_->begin(record_of(operation));
    if (signature.moves_nothing()) page_->finish(operation.number);
    return operation;
  }
  operation.place = page_->begin_message({operation.number, signature, 0, thread_});
  if (gpu_->flights().empty() && holds_no_message(flight)) page_->older_messages_ended();
  return operation;
}

void Communicator::show_under_way(const Operation& operation) noexcept {
  under_way_.store(
      static_cast<std::uint64_t>(operation.call.signature.kind) | operation.number << 8,
      std::memory_order_relaxed);
}

CallArguments Communicator::arguments_now(Operation& operation) {
  const Signature& signature = operation.call.signature;
  const std::uint64_t base =
      signature.point_to_point()
          ? digest_base(port_numbers(signature.peer, signature.kind == CallKind::send), signature)
          : last_.digest_base;
  operation.digest = digest(base, operation.number);
  CallArguments arguments = arguments_of(operation, operation.digest);
  arguments.buffers = operation.call.in_kernels;
  arguments.in_kernels = true;
  arguments.reached_by = operation.call.reached_by;
  return arguments;
}

void Communicator::await_gpu() {
  try {
    gpu_->stream().synchronize();
  } catch (const Error& error) {
    poison(error);
  }
  {
    const std::lock_guard lock(gpu_->mutex());
    reap();
  }
  if (stopped()) throw_cause();
}

void Communicator::run_on_gpu(const Call& call) {
  try {
    launch(call, nullptr);
  } catch (const Error&) {
    await_gpu();  // what was launched must have ended before the caller has its buffers back
    throw;
  }
  await_gpu();
}

void Communicator::make_room() {
  for (;;) {
    std::shared_ptr<DeviceEvent> oldest;
    {
      const std::lock_guard lock(gpu_->mutex());
      reap();
      if (stopped() || gpu_->queued() < most_queued) return;
      oldest = gpu_->flights().front().ended;
    }
    try {
      oldest->synchronize();
    } catch (const Error&) {
      // What comes now finds the failure and poisons.
    }
  }
}

void Communicator::reap() noexcept {
  auto& flights = gpu_->flights();
  for (; !flights.empty(); gpu_->land()) {
    GpuSide::Flight& flight = flights.front();
    try {
      if (!flight.ended->complete()) return reap_passed(flight);
    } catch (const Error& error) {
      poison(error);
    }
    // It is said before the event is: a call that failed is told before it would count as done.
    const gpu::Report report = gpu_->report();
    if (report.failure != 0 && !stopped() && !hear()) fail_on_gpu(report);
    for (const Operation& operation : flight.operations) {
      if (operation.call.signature.point_to_point())
        page_->finish_message(operation.place, 0);
      else if (!operation.ended)
        page_->finish(operation.number);
    }
  }
  under_way_.store(idle, std::memory_order_release);
}

void Communicator::reap_passed(GpuSide::Flight& flight) noexcept {
  const std::uint32_t passed = flight.calls.passed();
  if (passed == 0) return;
  for (Operation& operation : flight.operations) {
    if (operation.call.signature.point_to_point() || operation.turn > passed || operation.ended)
      continue;
    page_->finish(operation.number);
    operation.ended = true;
  }
}

void Communicator::fail_on_gpu(const gpu::Report& report) noexcept {
  const Operation* failed = nullptr;
  for (const GpuSide::Flight& flight : gpu_->flights())
    for (const Operation& operation : flight.operations)
      if (!operation.ended && (failed == nullptr || operation.digest == report.digest))
        failed = &operation;
  if (failed == nullptr) return;
  fail(*failed, static_cast<Status>(report.failure - 1),
       report.peer > 0 ? static_cast<int>(report.peer) - 1 : waited_for(*failed));
}

void Communicator::look_at_gpu() noexcept {
  if (stopped() || hear()) return;
  // Who makes a call now looks itself.
  const std::unique_lock lock(gpu_->mutex(), std::try_to_lock);
  if (!lock) return;
  reap();
  if (stopped()) return;
  try {
    std::vector<Operation*> begun;
    for (GpuSide::Flight& flight : gpu_->flights()) {
      if (!flight.awaited && !flight.begun->complete()) continue;
      const std::uint32_t last = flight.drained ? ~0u : flight.calls.passed() + 1;
      for (Operation& operation : flight.operations)
        if (!operation.ended && operation.turn <= last) begun.push_back(&operation);
    }
    if (!begun.empty()) examine(begun, system_->now());
  } catch (const Error& error) {
    poison(error);
  } catch (const std::bad_alloc&) {
    // The next look does it.
  }
}

void Communicator::settle_gpus() noexcept {
  // Who is to know of a failure knows it: poison() tells all ranks of the process in one visit.
  const auto until = std::chrono::steady_clock::now() + most_to_settle;
  for (bool busy = true; busy && std::chrono::steady_clock::now() < until;) {
    busy = false;
    Residents::of_process().visit_all(
        [&](Communicator& each) { busy |= each.gpu_ && each.stopped() && !each.gpu_->quiet(); });
    if (busy) std::this_thread::yield();
  }
}

void Communicator::drain_gpu() noexcept {
  std::vector<std::shared_ptr<DeviceEvent>> ended;
  try {
    {
      const std::lock_guard lock(gpu_->mutex());
      for (GpuSide::Flight& flight : gpu_->flights()) {
        flight.awaited = flight.drained = true;
        ended.push_back(flight.ended);
      }
    }
    // Those who look at the calls meanwhile end them at their deadline.
    for (const auto& event : ended) event->synchronize();
  } catch (const std::exception&) {
    // It has failed, and so has ended; or its end is waited for with the rest of the GPU's side.
  }
  {
    const std::lock_guard lock(gpu_->mutex());
    reap();
  }
  if (stopped()) settle_gpus();
}

}  // namespace khoro
