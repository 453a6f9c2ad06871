// SPDX-License-Identifier: Apache-2.0
#include "device/virtual/multiprocessors.h"

#include <fmt/format.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <deque>

#include "base/aligned.h"
#include "base/error.h"
#include "base/thread.h"
#include "device/virtual/block.h"

namespace khoro::virtual_gpu {
namespace {

// As GPUs have it.
constexpr int most_threads = 1024;
constexpr std::uint32_t most_shared_bytes = 227 << 10;

AlignedBytes allocate(std::size_t bytes) {
  AlignedBytes memory = allocate_aligned(bytes);
  if (memory == nullptr)
    throw Error(Code::out_of_memory, fmt::format("no {} bytes for a launch", bytes));
  return memory;
}

/// The threads of a block while it runs.
struct Block {
  Block(int block_number, unsigned threads)
      : number(block_number), meeting(static_cast<std::ptrdiff_t>(threads)), left(threads) {}
  int number;
  std::size_t room = 0;
  std::barrier<> meeting;
  unsigned left;  // of its threads; with the lock held
};

/// Sleeps now and then, so that those get on that are waited for, however many wait.
class Patience {
 public:
  void lose() noexcept {
    if (++losses_ % 4 != 0)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(100));
  }

 private:
  unsigned losses_ = 0;
};

}  // namespace

struct Grid {
  Grid(Multiprocessors& multiprocessors, std::size_t promised)
      : home(multiprocessors), promise(promised) {}
  ~Grid() { home.take_back(promise); }
  Grid(const Grid&) = delete;
  Grid& operator=(const Grid&) = delete;

  Multiprocessors& home;
  std::size_t promise;  // of threads
  KernelImage::Function function = nullptr;
  unsigned threads = 1;
  Delays delays;
  AlignedBytes arguments;
  // A room is the shared memory of a block, and of another when that has ended.
  std::size_t room_bytes = 0;
  AlignedBytes rooms;
  std::vector<std::size_t> free_rooms;
  std::deque<Block> blocks;
  std::size_t ended = 0;
};

struct BlockThread {
  Grid* grid;
  Block* block;
  unsigned rank;
};

namespace {

class RunningThread final : public VirtualBlock {
 public:
  explicit RunningThread(const BlockThread& thread) noexcept
      : grid_(*thread.grid),
        block_(*thread.block),
        rank_(thread.rank),
        delays_(grid_.delays.of(static_cast<std::uint64_t>(block_.number) * most_threads + rank_)) {
    delay();
  }
  unsigned rank() const noexcept override { return rank_; }
  unsigned size() const noexcept override { return grid_.threads; }
  unsigned block() const noexcept override { return static_cast<unsigned>(block_.number); }
  std::byte* shared() const noexcept override {
    return grid_.rooms.get() + block_.room * grid_.room_bytes;
  }
  void sync() const noexcept override {
    delay();
    block_.meeting.arrive_and_wait();
    delay();
  }
  void pause() const noexcept override {
    delay();
    patience_.lose();
  }

 private:
  void delay() const noexcept { delays_.at(calls_++); }

  Grid& grid_;
  Block& block_;
  unsigned rank_;
  Delays delays_;
  mutable std::uint64_t calls_ = 0;
  mutable Patience patience_;
};

}  // namespace

int FunctionKernel::resident_blocks(int threads, std::uint32_t shared_bytes) const {
  const bool fits = threads >= 1 && threads <= most_threads && shared_bytes <= most_shared_bytes;
  return fits ? resident_blocks_ : 0;
}

Multiprocessors::Multiprocessors(int device, const VirtualMachine& machine, Shortage& shortage,
                                 Delays delays)
    : device_(device),
      resident_blocks_(static_cast<std::size_t>(machine.resident_blocks)),
      block_threads_(machine.block_threads),
      shortage_(shortage),
      delays_(delays) {
  waiting_.reserve(resident_blocks_ * block_threads_);
  threads_.reserve(resident_blocks_ * block_threads_);
}

Multiprocessors::~Multiprocessors() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    work_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
}

std::shared_ptr<Grid> Multiprocessors::prepare(const Launch& launch) {
  const auto* const kernel = dynamic_cast<const FunctionKernel*>(launch.kernel);
  if (kernel == nullptr || kernel->device() != device_)
    throw Error(Code::invalid_argument, "a kernel of another device");
  if (launch.blocks < 1 || kernel->resident_blocks(launch.threads, launch.shared_bytes) == 0)
    throw Error(Code::invalid_argument,
                fmt::format("cannot launch {} blocks of {} threads with {} bytes of shared memory",
                            launch.blocks, launch.threads, launch.shared_bytes));
  shortage_.take(device_, "a launch");
  const unsigned threads = std::min(static_cast<unsigned>(launch.threads), block_threads_);
  const std::size_t at_once = std::min(static_cast<std::size_t>(launch.blocks), resident_blocks_);
  const std::uint64_t number = promise(at_once * threads);
  auto grid = std::make_shared<Grid>(*this, at_once * threads);
  grid->function = kernel->function();
  grid->threads = threads;
  grid->delays = delays_.of(number);
  grid->arguments = allocate(launch.arguments.size());
  std::copy(launch.arguments.begin(), launch.arguments.end(), grid->arguments.get());
  grid->room_bytes = to_lines(launch.shared_bytes);
  grid->rooms = allocate(at_once * grid->room_bytes);
  if (delays_) std::fill_n(grid->rooms.get(), at_once * grid->room_bytes, std::byte{0xa5});
  for (std::size_t room = 0; room < at_once; ++room) grid->free_rooms.push_back(room);
  for (int block = 0; block < launch.blocks; ++block) grid->blocks.emplace_back(block, threads);
  return grid;
}

std::uint64_t Multiprocessors::promise(std::size_t threads) {
  const std::lock_guard lock(mutex_);
  const std::size_t needed = std::min(promised_ + threads, resident_blocks_ * block_threads_);
  while (threads_.size() < needed) threads_.push_back(start_thread("block", [this] { work(); }));
  promised_ += threads;
  return launches_++;
}

void Multiprocessors::take_back(std::size_t threads) noexcept {
  const std::lock_guard lock(mutex_);
  promised_ -= threads;
}

void Multiprocessors::run(Grid& grid) noexcept {
  place(grid);
  std::unique_lock lock(mutex_);
  progress_.wait(lock, [&] { return grid.ended == grid.blocks.size(); });
}

void Multiprocessors::place(Grid& grid) noexcept {
  const std::lock_guard turn(turn_);
  for (Block& block : grid.blocks) {
    std::unique_lock lock(mutex_);
    progress_.wait(lock, [&] { return resident_ < resident_blocks_; });
    ++resident_;
    block.room = grid.free_rooms.back();
    grid.free_rooms.pop_back();
    for (unsigned rank = 0; rank < grid.threads; ++rank) waiting_.push_back({&grid, &block, rank});
    work_.notify_all();
  }
}

void Multiprocessors::work() noexcept {
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [&] { return !waiting_.empty() || ending_; });
    if (waiting_.empty()) return;
    const BlockThread next = waiting_.back();
    waiting_.pop_back();
    lock.unlock();
    {
      RunningThread thread(next);
      next.grid->function(next.grid->arguments.get(), thread);
    }
    lock.lock();
    if (--next.block->left == 0) end_block(*next.grid, next.block->room);
  }
}

void Multiprocessors::end_block(Grid& grid, std::size_t room) noexcept {
  --resident_;
  grid.free_rooms.push_back(room);
  ++grid.ended;
  progress_.notify_all();
}

}  // namespace khoro::virtual_gpu
