// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstring>

#include "base/device.h"
#include "conformance/driver.h"
#include "device/virtual/block.h"
#include "device/virtual/delays.h"
#include "device/virtual/machine.h"
#include "support/virtual_gpus.h"

using namespace khoro;
using test::virtual_gpus;

namespace {

struct Table {
  std::uint64_t* words;  // in kernels
  std::uint64_t count;
  std::atomic<int>* running = nullptr;
  std::atomic<int>* most = nullptr;
  std::uint64_t first = 0;  // of the launch's own words
};

/// Each block waits until all others have come.
void meet(const void* arguments, VirtualBlock& block) {
  const auto& table = *static_cast<const Table*>(arguments);
  if (block.rank() != 0) return;
  publish<std::uint64_t>(table.words[table.first + block.block()], 1);
  for (std::uint64_t other = 0; other < table.count; ++other)
    while (observe(table.words[other]) == 0) block.pause();
}

/// Adds up numbers that all threads of a block have left in its shared memory, many times.
void sum(const void* arguments, VirtualBlock& block) {
  const auto& table = *static_cast<const Table*>(arguments);
  auto* const shared = reinterpret_cast<std::uint64_t*>(block.shared());
  const unsigned before = (block.rank() + block.size() - 1) % block.size();
  std::uint64_t total = 0;
  for (std::uint64_t round = 0; round < table.count; ++round) {
    shared[block.rank()] = round;
    block.sync();
    total += shared[before];
    block.sync();
  }
  shared[block.rank()] = total;
  block.sync();
  if (block.rank() == 0)
    for (unsigned rank = 0; rank < block.size(); ++rank) table.words[block.block()] += shared[rank];
}

/// Counts the blocks that run at once.
void count(const void* arguments, VirtualBlock& block) {
  const auto& table = *static_cast<const Table*>(arguments);
  if (block.rank() == 0) {
    const int now = ++*table.running;
    for (int most = *table.most; most < now && !table.most->compare_exchange_weak(most, now);) {
    }
  }
  for (int i = 0; i < 20; ++i) block.pause();
  block.sync();
  if (block.rank() == 0) {
    ++std::atomic_ref<std::uint64_t>(table.words[block.block()]);
    --*table.running;
  }
}

void write_size(const void* arguments, VirtualBlock& block) {
  if (block.rank() == 0) static_cast<const Table*>(arguments)->words[block.block()] = block.size();
}

constexpr KernelImage::Entry entries[] = {
    {"meet", &meet}, {"sum", &sum}, {"count", &count}, {"write_size", &write_size}};
const KernelImage image{{}, entries};

/// Words in memory of a device, and a launch that uses them.
struct Words {
  Words(Driver& of, int on, std::size_t words)
      : driver(of), device(on), memory(driver.allocate(device, 8 * words)), count(words) {}
  Table table(std::uint64_t number) const {
    return {reinterpret_cast<std::uint64_t*>(driver.in_kernels(device, memory->address())), number};
  }
  std::vector<std::uint64_t> fetch() const {
    const conformance::Bytes bytes =
        conformance::fetch(driver, device, memory->address(), 8 * count);
    std::vector<std::uint64_t> words(count);
    std::memcpy(words.data(), bytes.data(), bytes.size());
    return words;
  }

  Driver& driver;
  int device;
  std::unique_ptr<DeviceMemory> memory;
  std::size_t count;
};

Launch launch_of(Driver& driver, int device, const char* name, int blocks, const Table& table) {
  return {&driver.kernel(device, image, name), blocks, 512, 4096,
          std::as_bytes(std::span(&table, 1))};
}

}  // namespace

TEST_CASE("blocks of a virtual GPU wait for each other", "[device]") {
  for (const std::uint64_t seed : {0, 1, 2, 3}) {
    VirtualMachine machine = virtual_gpus(2);
    machine.seed = seed;
    machine.resident_blocks = 50;
    const auto driver = make_virtual_driver(machine);
    for (const int blocks : {1, 2, 17, 50}) {
      const Words words(*driver, 0, 50);
      const Table table = words.table(static_cast<std::uint64_t>(blocks));
      const auto stream = driver->make_stream(0);
      const Launch launch = launch_of(*driver, 0, "meet", blocks, table);
      CHECK(launch.kernel->resident_blocks(launch.threads, launch.shared_bytes) == 50);
      stream->launch(launch);
      stream->synchronize();
      for (int block = 0; block < 50; ++block)
        CHECK(words.fetch()[static_cast<std::size_t>(block)] == (block < blocks ? 1 : 0));
    }
  }
}

TEST_CASE("blocks of virtual GPUs wait for those of others", "[device]") {
  const auto driver = make_virtual_driver(virtual_gpus(2));
  const Words words(*driver, 0, 8);
  words.memory->allow(1);
  std::vector<std::unique_ptr<DeviceStream>> streams;
  for (int device = 0; device < 2; ++device) {
    Table table = words.table(8);  // each waits for those of both
    table.first = 4 * static_cast<std::uint64_t>(device);
    streams.push_back(driver->make_stream(device));
    streams.back()->launch(launch_of(*driver, device, "meet", 4, table));
  }
  for (const auto& stream : streams) stream->synchronize();
  CHECK(words.fetch() == std::vector<std::uint64_t>(8, 1));
}

TEST_CASE("threads of a block meet and share memory", "[device]") {
  for (const std::uint64_t seed : {0, 7}) {
    for (const unsigned threads : {1, 2, 5}) {
      VirtualMachine machine = virtual_gpus(2);
      machine.seed = seed;
      machine.block_threads = threads;
      const auto driver = make_virtual_driver(machine);
      const Words words(*driver, 1, 6);
      const auto stream = driver->make_stream(1);
      stream->launch(launch_of(*driver, 1, "sum", 6, words.table(30)));
      stream->launch(launch_of(*driver, 1, "sum", 6, words.table(30)));
      stream->synchronize();
      CHECK(words.fetch() == std::vector<std::uint64_t>(6, 2 * 435 * threads));
    }
  }
}

TEST_CASE("a launch that is larger than a virtual GPU runs in waves", "[device]") {
  VirtualMachine machine = virtual_gpus(2);
  machine.resident_blocks = 3;
  const auto driver = make_virtual_driver(machine);
  const Words words(*driver, 0, 40);
  std::atomic<int> running = 0, most = 0;
  Table table = words.table(0);
  table.running = &running;
  table.most = &most;
  const auto first = driver->make_stream(0), second = driver->make_stream(0);
  for (int launch = 0; launch < 3; ++launch)
    for (const auto* stream : {&first, &second})
      (*stream)->launch(launch_of(*driver, 0, "count", 40, table));
  first->synchronize();
  second->synchronize();
  CHECK(most <= 3);  // that so many do run at once is what "meet" shows
  CHECK(running == 0);
  CHECK(words.fetch() == std::vector<std::uint64_t>(40, 6));
}

TEST_CASE("a launch gets a copy of its arguments and no more threads than it asks for",
          "[device]") {
  VirtualMachine machine = virtual_gpus(2);
  machine.block_threads = 3;
  const auto driver = make_virtual_driver(machine);
  const Words words(*driver, 0, 2);
  const auto stream = driver->make_stream(0);
  conformance::Gate gate;
  stream->call(gate.wait());
  {
    Table table = words.table(0);
    Launch launch = launch_of(*driver, 0, "write_size", 1, table);
    launch.threads = 2;
    stream->launch(launch);
    table.words += 1;
    launch.threads = 1024;
    stream->launch(launch);
    table.words = nullptr;
  }
  gate.open();
  stream->synchronize();
  CHECK(words.fetch() == std::vector<std::uint64_t>{2, 3});
}

TEST_CASE("launches that no GPU could do are refused", "[device]") {
  const auto driver = make_virtual_driver(virtual_gpus(2));
  const auto stream = driver->make_stream(0);
  const Words words(*driver, 0, 1);
  const Table table = words.table(0);
  const Launch good = launch_of(*driver, 0, "write_size", 1, table);
  CHECK(&driver->kernel(0, image, "write_size") == good.kernel);
  const auto refused = [&](auto&& change) {
    Launch launch = good;
    change(launch);
    return conformance::code_of_call([&] { stream->launch(launch); }) == Code::invalid_argument;
  };
  CHECK(!refused([](Launch&) {}));
  stream->synchronize();
  CHECK(refused([](Launch& launch) { launch.blocks = 0; }));
  CHECK(refused([](Launch& launch) { launch.threads = 0; }));
  CHECK(refused([](Launch& launch) { launch.threads = 1025; }));
  CHECK(refused([](Launch& launch) { launch.shared_bytes = 1 << 20; }));
  CHECK(refused([](Launch& launch) { launch.kernel = nullptr; }));
  CHECK(refused([&](Launch& launch) { launch.kernel = &driver->kernel(1, image, "sum"); }));
  CHECK(good.kernel->resident_blocks(2000, 0) == 0);
  CHECK(conformance::code_of_call([&] { (void)driver->kernel(0, image, "none"); }) ==
        Code::invalid_argument);
}

TEST_CASE("a seed chooses delays, and the same one the same", "[device]") {
  using virtual_gpu::Delays;
  CHECK(!Delays().of(3));
  CHECK(Delays(1).of(3));
  const auto choice = [](Delays delays) {
    std::string made;
    for (std::uint64_t place = 0; place < 2000; ++place) made += delays.asked(place) ? '1' : '0';
    return made;
  };
  CHECK(choice(Delays()).find('1') == std::string::npos);
  const std::string one = choice(Delays(1).of(4));
  CHECK(one.find('1') != std::string::npos);
  CHECK(choice(Delays(1).of(4)) == one);
  CHECK(choice(Delays(1).of(5)) != one);
  CHECK(choice(Delays(2).of(4)) != one);
}
