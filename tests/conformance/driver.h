// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <future>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "base/packet_socket.h"
#include "device/driver.h"
#include "support/catch.h"
#include "support/child.h"

/// What every driver keeps, of GPUs that are real, virtual or neither: call check_driver() for it
/// in a test case.
namespace khoro::conformance {

/// A driver under test.
struct DriverSubject {
  std::function<std::unique_ptr<Driver>()> make;
};

using Bytes = std::vector<std::byte>;

inline DeviceAddress address_of(const void* data) { return reinterpret_cast<DeviceAddress>(data); }

inline Bytes noise(std::size_t bytes, std::uint64_t seed) {
  Bytes made(bytes);
  for (std::size_t at = 0; at < bytes; ++at)
    made[at] = static_cast<std::byte>(mix(seed * 1'000'003 + at / 8) >> (at % 8 * 8));
  return made;
}

/// A second device, if there is one.
inline int far_of(const Driver& driver) { return driver.devices() > 1 ? 1 : 0; }

/// The code with which `function` fails; success if it does not.
template <class Function>
Code code_of_call(Function&& function) {
  try {
    function();
  } catch (const Error& error) {
    CHECK(std::string(error.what()).size() > 10);
    return error.code();
  }
  return Code::success;
}

/// Host memory of whole pages.
class Pages {
 public:
  explicit Pages(std::size_t count)
      : bytes_(count * 4096),
        data_(::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    REQUIRE(data_ != MAP_FAILED);
  }
  ~Pages() { ::munmap(data_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  std::span<std::byte> bytes() const { return {static_cast<std::byte*>(data_), bytes_}; }

 private:
  std::size_t bytes_;
  void* data_;
};

/// Holds a stream up until it is opened.
class Gate {
 public:
  ~Gate() { open(); }
  void open() {
    if (!opened_.exchange(true)) promise_.set_value();
  }
  std::function<void()> wait() const {
    return [future = future_] { future.wait(); };
  }

 private:
  std::atomic<bool> opened_ = false;
  std::promise<void> promise_;
  std::shared_future<void> future_ = promise_.get_future().share();
};

/// What is in memory of a device.
inline Bytes fetch(Driver& driver, int device, DeviceAddress from, std::size_t bytes) {
  Bytes seen(bytes);
  const auto stream = driver.make_stream(device);
  stream->copy(address_of(seen.data()), from, bytes);
  stream->synchronize();
  return seen;
}

inline void check_copies(Driver& driver) {
  INFO(__func__);
  const auto near = driver.allocate(0, 100'000), far = driver.allocate(far_of(driver), 100'000);
  Pages pages(30);
  const auto pinned = driver.pin(pages.bytes());
  CHECK(pinned->address() == address_of(pages.bytes().data()));
  const auto stream = driver.make_stream(0);
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{4097}, std::size_t{99'990}}) {
    const Bytes sent = noise(bytes, bytes);
    Bytes received(bytes);
    const std::size_t skip = bytes % 7;
    stream->copy(near->address() + skip, address_of(sent.data()), bytes);
    stream->copy(far->address() + 1, near->address() + skip, bytes);
    stream->copy(pinned->address() + 3, far->address() + 1, bytes);
    stream->copy(address_of(received.data()), pinned->address() + 3, bytes);
    stream->synchronize();
    CHECK(received == sent);
  }
  const DeviceAddress end = near->address() + near->bytes();
  stream->fill(near->address(), std::byte{7}, near->bytes());
  stream->fill(end - 10, std::byte{9}, 10);
  stream->synchronize();
  Bytes expected(20, std::byte{7});
  std::fill(expected.begin() + 10, expected.end(), std::byte{9});
  CHECK(fetch(driver, 0, end - 20, 20) == expected);
}

inline void check_zeroed(Driver& driver) {
  INFO(__func__);
  const Bytes zeros(50'000);
  for (int round = 0; round < 3; ++round) {
    const auto memory = driver.allocate(0, zeros.size());
    CHECK(memory->bytes() == zeros.size());
    CHECK(memory->address() % 256 == 0);
    CHECK(fetch(driver, 0, memory->address(), zeros.size()) == zeros);
    const auto stream = driver.make_stream(0);
    stream->fill(memory->address(), std::byte{0xff}, zeros.size());
    stream->synchronize();
  }
}

inline void check_order(Driver& driver) {
  INFO(__func__);
  const auto memory = driver.allocate(0, 64);
  std::array<std::array<std::byte, 64>, 200> seen{};
  std::vector<int> calls;
  {
    const auto stream = driver.make_stream(0);
    for (int i = 0; i < 200; ++i) {
      stream->fill(memory->address(), static_cast<std::byte>(i), 64);
      stream->copy(address_of(seen[static_cast<std::size_t>(i)].data()), memory->address(), 64);
      stream->call([&calls, i] { calls.push_back(i); });
    }
  }  // what was queued is done before it ends
  REQUIRE(calls.size() == 200);
  for (int i = 0; i < 200; ++i) {
    CHECK(calls[static_cast<std::size_t>(i)] == i);
    for (const std::byte byte : seen[static_cast<std::size_t>(i)])
      REQUIRE(byte == static_cast<std::byte>(i));
  }
}

/// The host goes on while a stream works.
inline void check_asynchrony(Driver& driver) {
  INFO(__func__);
  const auto stream = driver.make_stream(0), other = driver.make_stream(0);
  const auto before = driver.make_event(0), after = driver.make_event(0);
  CHECK(stream->idle());
  CHECK(after->complete());  // was never recorded
  after->synchronize();
  stream->wait(*after);
  Gate gate;
  std::atomic<bool> done = false;
  stream->record(*before);
  stream->call(gate.wait());
  stream->call([&] { done = true; });
  stream->record(*after);
  before->synchronize();
  CHECK(!stream->idle());
  CHECK(!after->complete());
  CHECK(!done);
  CHECK(before->complete());
  CHECK(other->idle());
  gate.open();
  after->synchronize();
  CHECK(done);
  CHECK(after->complete());
  stream->synchronize();
  CHECK(stream->idle());
}

/// Streams of different devices wait for each other where they are told to.
inline void check_waits(Driver& driver) {
  INFO(__func__);
  const auto memory = driver.allocate(0, 8);
  const auto writer = driver.make_stream(0), reader = driver.make_stream(far_of(driver));
  const auto written = driver.make_event(0);
  Pages pages(1);  // copies to other host memory may block until they are done
  const auto pinned = driver.pin(pages.bytes());
  for (int round = 1; round <= 20; ++round) {
    Gate gate;
    writer->call(gate.wait());
    writer->fill(memory->address(), static_cast<std::byte>(round), 8);
    writer->record(*written);
    reader->wait(*written);
    reader->copy(pinned->address(), memory->address(), 8);
    CHECK(!reader->idle());
    // What is recorded later is not waited for.
    Gate later;
    writer->call(later.wait());
    writer->record(*written);
    gate.open();
    reader->synchronize();
    CHECK(pages.bytes()[0] == static_cast<std::byte>(round));
    CHECK(pages.bytes()[7] == static_cast<std::byte>(round));
    CHECK(!written->complete());
  }
}

inline void check_failures(Driver& driver) {
  INFO(__func__);
  const auto failing = driver.make_stream(0), other = driver.make_stream(0);
  failing->call([] { throw std::runtime_error("planted by a test"); });
  CHECK(code_of_call([&] { failing->synchronize(); }) == Code::unhandled_device_error);
  CHECK(code_of_call([&] { (void)failing->idle(); }) == Code::unhandled_device_error);
  CHECK(code_of_call([&] { failing->call([] {}); }) == Code::unhandled_device_error);
  try {
    failing->synchronize();
  } catch (const Error& error) {
    CHECK_THAT(error.what(), Catch::Contains("planted by a test"));
  }
  bool done = false;
  other->call([&] { done = true; });
  other->synchronize();
  CHECK(done);
}

inline void check_borrowed_streams(Driver& driver) {
  INFO(__func__);
  const auto own = driver.make_stream(0);
  CHECK(own->native() != nullptr);
  int steps = 0;
  Gate gate;
  own->call(gate.wait());
  {
    const auto borrowed = driver.borrow_stream(0, own->native());
    CHECK(borrowed->native() == own->native());
    borrowed->call([&] { CHECK(++steps == 1); });
    own->call([&] { CHECK(++steps == 2); });
    borrowed->call([&] { CHECK(++steps == 3); });
    CHECK(!borrowed->idle());
  }  // stays the owner's: nothing is waited for
  CHECK(!own->idle());
  gate.open();
  own->synchronize();
  CHECK(steps == 3);
  const int far = far_of(driver);
  if (far > 0)
    CHECK(code_of_call([&] { driver.borrow_stream(far, own->native()); }) ==
          Code::invalid_argument);

  const auto first = driver.borrow_stream(far, nullptr),
             second = driver.borrow_stream(far, nullptr);
  CHECK(first->native() == nullptr);
  bool done = false;
  Gate other;
  first->call(other.wait());
  first->call([&] { done = true; });
  CHECK(!second->idle());
  other.open();
  second->synchronize();
  CHECK(done);
}

inline void check_addresses(Driver& driver) {
  INFO(__func__);
  using Kind = AddressFacts::Kind;
  const int far = far_of(driver);
  const auto memory = driver.allocate(far, 10'000);
  const auto neighbour = driver.allocate(far, 10'000);
  for (const std::uint64_t at : {0, 1, 5'000, 9'999}) {
    const AddressFacts facts = driver.facts(memory->address() + at);
    CHECK(facts.kind == Kind::device);
    CHECK(facts.device == far);
    CHECK(facts.begin == memory->address());
    CHECK(facts.bytes >= 10'000);
    const Reached reached = driver.reach(far, memory->address() + at);
    CHECK(reached.in_kernels == driver.in_kernels(far, memory->address()) + at);
    CHECK(reached.facts.device == far);
    CHECK(reached.facts.begin == facts.begin);
    CHECK(reached.facts.bytes == facts.bytes);
  }
  CHECK(driver.facts(memory->address() - 1).begin != memory->address());
  Pages pages(2);
  const DeviceAddress host = address_of(pages.bytes().data());
  CHECK(driver.facts(host).kind == Kind::unknown);
  {
    const auto pinned = driver.pin(pages.bytes());
    CHECK(driver.facts(host + 8191).kind == Kind::pinned);
    CHECK(driver.facts(host + 8191).begin == host);
    CHECK(driver.in_kernels(0, host + 5) != 0);
    CHECK(driver.in_kernels(far, host + 5) == driver.in_kernels(far, host) + 5);
    CHECK(code_of_call([&] { driver.pin(pages.bytes()); }) != Code::success);
  }
  CHECK(driver.facts(host).kind == Kind::unknown);
  for (const DeviceAddress nothing : {host, DeviceAddress{0}, address_of(&host)}) {
    CHECK(driver.facts(nothing).bytes == 0);
    CHECK(code_of_call([&] { (void)driver.in_kernels(0, nothing); }) == Code::invalid_usage);
  }
}

inline void check_reach(Driver& driver) {
  INFO(__func__);
  for (int peer = 0; peer < driver.devices(); ++peer) {
    const auto memory = driver.allocate(peer, 4096);
    CHECK(driver.reaches(peer, peer));
    for (int device = 0; device < driver.devices(); ++device) {
      const auto reach = [&] { (void)driver.in_kernels(device, memory->address()); };
      if (device == peer) {
        CHECK(code_of_call(reach) == Code::success);
        continue;
      }
      CHECK(code_of_call(reach) == Code::invalid_usage);
      const Code allowed = code_of_call([&] { memory->allow(device); });
      CHECK(allowed == (driver.reaches(device, peer) ? Code::success : Code::invalid_usage));
      CHECK(code_of_call(reach) == allowed);
      CHECK(code_of_call([&] { memory->allow(device); }) == allowed);
    }
  }
}

/// Whom a driver says to reach memory does, by the same address.
inline void check_reach_of_all(Driver& driver) {
  INFO(__func__);
  for (int peer = 0; peer < driver.devices(); ++peer) {
    const auto memory = driver.allocate(peer, 4096);
    const DeviceAddress address = memory->address() + 100;
    CHECK(driver.reach(peer, address).devices == only(peer));
    memory->allow_all();
    const Reached reached = driver.reach(peer, address);
    CHECK((reached.devices & only(peer)) != 0);
    for (int device = 0; device < driver.devices(); ++device) {
      const bool said = (reached.devices & only(device)) != 0;
      if (said) CHECK(driver.in_kernels(device, address) == reached.in_kernels);
      if (said) CHECK(driver.reach(device, address).devices == reached.devices);
      if (said) CHECK(driver.reaches(device, peer));
    }
  }
}

/// For devices that have little memory, and nobody else's in it.
inline void check_exhaustion(Driver& driver) {
  INFO(__func__);
  const std::uint64_t all = driver.facts(0).memory_bytes;
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint64_t bytes : {all + 1, most / 2, most - 1, most}) {
    INFO(bytes);
    CHECK(code_of_call([&] { driver.allocate(0, bytes); }) == Code::out_of_memory);
  }
  std::size_t count = 0;
  for (int round = 0; round < 2; ++round) {
    std::vector<std::unique_ptr<DeviceMemory>> parts;
    const Code end = code_of_call([&] {
      while (parts.size() < 100) parts.push_back(driver.allocate(0, all / 8));
    });
    CHECK(end == Code::out_of_memory);
    CHECK(parts.size() >= 4);
    CHECK(parts.size() <= 8);
    if (round == 1) CHECK(parts.size() == count);  // what was given back can be had again
    count = parts.size();
    CHECK(code_of_call([&] { driver.allocate(1, all / 8); }) == Code::success);
  }
}

inline void check_bad_arguments(Driver& driver) {
  INFO(__func__);
  const auto refused = [](auto&& call) { return code_of_call(call) == Code::invalid_argument; };
  for (const int device : {-1, driver.devices(), std::numeric_limits<int>::max()}) {
    INFO(device);
    CHECK(refused([&] { (void)driver.facts(device); }));
    CHECK(refused([&] { (void)driver.reaches(device, 0); }));
    CHECK(refused([&] { (void)driver.reaches(0, device); }));
    CHECK(refused([&] { (void)driver.in_kernels(device, 0); }));
    CHECK(refused([&] { driver.allocate(device, 4096); }));
    CHECK(refused([&] { driver.open(device, {}); }));
    CHECK(refused([&] { driver.make_stream(device); }));
    CHECK(refused([&] { driver.borrow_stream(device, nullptr); }));
    CHECK(refused([&] { driver.make_event(device); }));
    CHECK(refused([&] { (void)driver.kernel(device, {}, "none"); }));
  }
  CHECK(refused([&] { driver.allocate(0, 0); }));
  CHECK(refused([&] { (void)driver.kernel(0, {}, "none"); }));
  Pages pages(2);
  CHECK(refused([&] { driver.pin({}); }));
  CHECK(refused([&] { driver.pin(pages.bytes().subspan(1, 4096)); }));
  CHECK(refused([&] { driver.pin(pages.bytes().first(100)); }));
}

/// What a child finds of memory that its parent has made.
struct SharedMemoryWords {
  std::array<std::byte, 64> words;
  std::uint64_t bytes;
  std::uint64_t seed;
};

/// Opens what comes over `socket`, checks it, and answers in it.
inline int open_what_comes(const DriverSubject& subject, const Descriptor& socket) {
  const std::unique_ptr<Driver> driver = subject.make();
  const int far = far_of(*driver);
  SharedMemoryWords said{};
  std::vector<Descriptor> descriptors;
  if (receive_packet(socket, std::as_writable_bytes(std::span(&said, 1)), descriptors, 1) !=
      PacketStatus::done)
    return 1;
  MemoryHandle handle{{}, said.words, said.bytes};
  if (!descriptors.empty()) handle.descriptor = std::move(descriptors.front());
  const auto memory = driver->open(far, handle);
  if (memory->bytes() < said.bytes) return 2;
  if (fetch(*driver, far, memory->address(), said.bytes) != noise(said.bytes, said.seed)) return 3;
  if (driver->in_kernels(far, memory->address()) == 0) return 4;
  if (driver->facts(memory->address() + 1).begin != memory->address()) return 5;
  const Bytes answer = noise(said.bytes, said.seed + 1);
  const auto stream = driver->make_stream(far);
  stream->copy(memory->address(), address_of(answer.data()), answer.size());
  stream->synchronize();
  return 0;
}

/// Memory that one process has made and another one opens.
inline void check_sharing(const DriverSubject& subject) {
  INFO(__func__);
  std::array<int, 2> ends{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0);
  Descriptor here(ends[0]), there(ends[1]);
  test::Child child([&] { return open_what_comes(subject, there); });
  const std::unique_ptr<Driver> driver = subject.make();
  const auto memory = driver->allocate(0, 300'000);
  const Bytes sent = noise(memory->bytes(), 1);
  const auto stream = driver->make_stream(0);
  stream->copy(memory->address(), address_of(sent.data()), sent.size());
  stream->synchronize();
  {
    const MemoryHandle handle = memory->handle();
    const SharedMemoryWords words{handle.words, handle.bytes, 1};
    const int number = handle.descriptor.number();
    const std::span<const int> numbers(&number, handle.descriptor ? 1 : 0);
    REQUIRE(send_packet(here, std::as_bytes(std::span(&words, 1)), numbers) == PacketStatus::done);
  }
  CHECK(child.wait() == 0);
  CHECK(fetch(*driver, 0, memory->address(), memory->bytes()) == noise(memory->bytes(), 2));
  MemoryHandle nothing;
  nothing.bytes = 4096;
  CHECK(code_of_call([&] { driver->open(0, nothing); }) != Code::success);
}

/// All that one process can see, of any devices.
inline void check_driver(Driver& driver) {
  REQUIRE(driver.devices() >= 1);
  check_copies(driver);
  check_zeroed(driver);
  check_order(driver);
  check_asynchrony(driver);
  check_waits(driver);
  check_failures(driver);
  check_borrowed_streams(driver);
  check_addresses(driver);
  check_reach(driver);
  check_reach_of_all(driver);
  check_bad_arguments(driver);
}

}  // namespace khoro::conformance
