// SPDX-License-Identifier: Apache-2.0

// The interpreter and its verbs over an engine that lives on a device: that this compiles is what
// is tested where nvcc is found. A lane is a block; its leader spins on flags in memory that both
// ends of a channel see.

#include "device/arithmetic.h"
#include "executor/interpreter.h"

namespace khoro {
namespace {

/// The threads of one block.
struct Block {
  __device__ unsigned rank() const { return threadIdx.x; }
  __device__ unsigned size() const { return blockDim.x; }
  __device__ void sync() const { __syncthreads(); }
};

constexpr std::uint64_t slots = 4;

/// One channel: the number of the last message, that of the last release, and slots between them.
struct Channel {
  std::uint64_t published = 0;
  std::uint64_t released = 0;
  MessageHead heads[slots];
  std::byte* data = nullptr;  // slots x slot_bytes
  std::uint64_t slot_bytes = 0;
};

/// What an engine keeps for a channel that its rank uses.
struct End {
  Channel* channel = nullptr;
  std::uint64_t number = 0;  // of the last message published or released here
  Message message;
};

struct Held {
  std::uint64_t elements = 0;
  Form form = Form::dtype;
  bool written = false;
};

class DeviceEngine {
 public:
  const Stage* stages = nullptr;
  const std::uint32_t* ports = nullptr;
  End* ends = nullptr;
  int* tokens = nullptr;
  Held* held = nullptr;
  std::byte* buffers[3] = {};
  const std::uint64_t* cuts = nullptr;  // element at which chunk i of input and output begins
  std::uint64_t tile_count = 1;
  std::uint32_t rank_count = 2;
  std::uint64_t chunk_room = 0;
  std::uint32_t call_digest = 0;
  unsigned shifts[2] = {2, 2};
  Form carry = Form::dtype;
  Dtype dtype = Dtype::f32;
  Reduction reduction = Reduction::sum;
  Status status = Status::ok;

  __device__ const Stage& stage(std::uint32_t i) const { return stages[i]; }
  __device__ std::uint32_t port_of(std::uint32_t stage) const { return ports[stage]; }
  __device__ std::uint64_t tiles() const { return tile_count; }
  __device__ std::uint32_t ranks() const { return rank_count; }
  __device__ std::uint32_t digest(std::uint32_t) const { return call_digest; }
  __device__ bool skips(std::uint32_t, std::uint64_t) const { return false; }
  __device__ void fail(Status why) { status = why; }
  __device__ unsigned shift(Form form) const { return shifts[static_cast<int>(form)]; }
  __device__ Form carry_form() const { return carry; }
  __device__ std::uint64_t room() const { return chunk_room; }

  __device__ void piece(Run& run, std::uint32_t, Buffer buffer, std::int32_t chunk,
                        std::uint64_t tile) const {
    run.buffer = buffer;
    run.tile = tile;
    run.next = chunk;
    next_piece(run);
    run.last = run.next;
  }
  __device__ void next_piece(Run& run) const {
    const std::int32_t chunk = run.next++;
    std::byte* const base = buffers[static_cast<int>(run.buffer)];
    if (run.buffer == Buffer::scratch) {
      run.data = base + (chunk * chunk_room << shifts[1]);
      if (!run.fresh) run.form = held[chunk].form;
      run.left = run.fresh ? length(chunk, run.tile) : held[chunk].elements;
    } else {
      run.data = base + (cuts[chunk] << shifts[0]);
      run.left = cuts[chunk + 1] - cuts[chunk];
      run.form = Form::dtype;
    }
  }
  __device__ std::uint64_t length(std::int32_t chunk, std::uint64_t) const {
    return cuts[chunk + 1] - cuts[chunk];
  }
  __device__ void hold(std::int32_t chunk, std::uint64_t elements, Form form) {
    held[chunk] = {elements, form, true};
  }
  __device__ bool holds(std::int32_t first, std::int32_t last) const {
    for (std::int32_t chunk = first; chunk < last; ++chunk)
      if (!held[chunk].written) return false;
    return true;
  }

  __device__ bool take_token(int token) {
    const int count = khoro::observe(tokens[token]);
    if (count > 0) atomicSub(&tokens[token], 1);
    return count > 0;
  }
  __device__ void give_token(int token) {
    __threadfence();
    atomicAdd(&tokens[token], 1);
  }

  __device__ bool lands(std::uint32_t) const { return false; }
  __device__ void aim(std::uint32_t, std::byte*, std::uint64_t) {}
  __device__ Observed observe(std::uint32_t port) {
    End& end = ends[port];
    if (khoro::observe(end.channel->published) <= end.number) return {};
    end.message.head = end.channel->heads[end.number % slots];
    if (end.message.head.digest != call_digest) return {Status::mismatch, nullptr};
    end.message.data = slot(end);
    return {Status::ok, &end.message};
  }
  __device__ bool intact(std::uint32_t) const { return true; }
  __device__ void release(std::uint32_t port) {
    khoro::publish(ends[port].channel->released, ++ends[port].number);
  }
  __device__ std::byte* acquire(std::uint32_t port, std::uint64_t) const {
    const End& end = ends[port];
    const bool full = end.number - khoro::observe(end.channel->released) == slots;
    return full ? nullptr : slot(end);
  }
  __device__ std::uint64_t payload_limit(std::uint32_t port) const {
    return ends[port].channel->slot_bytes;
  }
  __device__ void publish(std::uint32_t port, const MessageHead& head) {
    End& end = ends[port];
    end.channel->heads[end.number % slots] = head;
    khoro::publish(end.channel->published, ++end.number);
  }

  // This engine knows no windows and lends nothing.
  struct OfferedWindow {
    std::uint32_t stage = 0;
    std::uint64_t tile = 0;
    bool open = false;
  };
  __device__ const Window* window(std::uint32_t) const { return nullptr; }
  __device__ void publish_put(std::uint32_t, const MessageHead&) {}
  __device__ bool offer(std::uint32_t, const Window&, std::uint32_t, std::uint64_t) {
    return false;
  }
  __device__ OfferedWindow oldest_window(std::uint32_t) const { return {}; }
  __device__ void window_taken(std::uint32_t) {}
  __device__ bool lends_from(Buffer) const { return false; }
  __device__ bool lends() const { return false; }
  __device__ bool lent(const std::byte*, std::uint64_t) const { return false; }
  __device__ bool may_lend(std::uint32_t, const Move&, std::uint64_t) const { return false; }
  __device__ void lend(std::uint32_t, const MessageHead&, const std::byte*) {}

  /// Neighbouring threads take neighbouring elements, 16 bytes each.
  __device__ std::uint64_t grain() const { return 16 >> shifts[1]; }
  __device__ void fold(std::byte* to, Form form, const Operand* operands,
                       std::uint32_t operand_count, std::uint64_t first, std::uint64_t elements,
                       std::uint32_t divisor) const {
    visit(dtype, reduction, Partials::dtype, [&]<class T, class Operation>(T, Operation) {
      using Accumulator = typename T::Accumulator;
      for (std::uint64_t i = first; i < first + elements; ++i) {
        Accumulator value = load<T>(operands[0], i);
        for (std::uint32_t k = 1; k < operand_count; ++k)
          value = Operation::apply(value, load<T>(operands[k], i));
        if (divisor != 0) value = divide(value, divisor);
        if (form == Form::carry)
          reinterpret_cast<typename T::Carry*>(to)[i] = convert<typename T::Carry>(value);
        else
          reinterpret_cast<typename T::Element*>(to)[i] = convert<typename T::Element>(value);
      }
    });
  }

 private:
  template <class T>
  __device__ static typename T::Accumulator load(const Operand& operand, std::uint64_t i) {
    using Accumulator = typename T::Accumulator;
    if (operand.form == Form::carry)
      return convert<Accumulator>(reinterpret_cast<const typename T::Carry*>(operand.data)[i]);
    return convert<Accumulator>(reinterpret_cast<const typename T::Element*>(operand.data)[i]);
  }
  __device__ static std::byte* slot(const End& end) {
    return end.channel->data + end.number % slots * end.channel->slot_bytes;
  }
};

}  // namespace

/// Block b runs lane b of the program of `engine`.
__global__ void run_lanes(DeviceEngine* engine, LaneState* lanes) {
  __shared__ LaneState lane;
  const Block block;
  if (block.rank() == 0) lane = lanes[blockIdx.x];
  block.sync();
  Progress progress = Progress::moved;
  while (progress == Progress::moved || progress == Progress::waiting)
    progress = advance(*engine, block, lane);
  if (block.rank() == 0) lanes[blockIdx.x] = lane;
}

}  // namespace khoro
