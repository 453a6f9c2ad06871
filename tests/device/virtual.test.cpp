// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <sys/resource.h>

#include <cstring>
#include <functional>
#include <span>

#include "conformance/driver.h"
#include "device/virtual/block.h"
#include "device/virtual/machine.h"
#include "support/captured_log.h"
#include "support/open_things.h"
#include "support/virtual_gpus.h"

using namespace khoro;
using test::virtual_gpus;

TEST_CASE("virtual GPUs keep what drivers promise", "[device]") {
  const auto driver = make_virtual_driver(virtual_gpus(3));
  CHECK(driver->name() == "virtual");
  conformance::check_driver(*driver);
  conformance::check_exhaustion(*driver);
}

TEST_CASE("virtual GPUs keep what drivers promise when all is delayed", "[device]") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    INFO("seed " << seed);
    VirtualMachine machine = virtual_gpus(2);
    machine.seed = seed;
    conformance::check_driver(*make_virtual_driver(machine));
  }
}

TEST_CASE("the chosen thing that takes memory of virtual GPUs fails, and no other", "[device]") {
  const test::QuietLog quiet;
  const KernelImage::Entry entries[] = {{"nothing", [](const void*, VirtualBlock&) {}}};
  const KernelImage image{{}, entries};
  const auto giver = make_virtual_driver(virtual_gpus(1));
  const auto given = giver->allocate(0, 4096);
  const std::span pages(reinterpret_cast<std::byte*>(giver->in_kernels(0, given->address())), 4096);
  for (std::uint64_t failure = 0; failure <= 7; ++failure) {
    INFO("thing " << failure);
    VirtualMachine machine = virtual_gpus(1);
    machine.failure = failure;
    const auto driver = make_virtual_driver(machine);
    const Kernel* kernel = nullptr;
    std::unique_ptr<DeviceStream> stream;
    const std::function<void()> things[] = {
        [&] { driver->allocate(0, 100); },
        [&] { driver->open(0, given->handle()); },
        [&] { driver->pin(pages); },
        [&] { driver->make_event(0); },
        [&] { kernel = &driver->kernel(0, image, "nothing"); },
        [&] { stream = driver->make_stream(0); },
        [&] {
          stream->launch({kernel, 1, 1, 0, {}});
        },
    };
    for (std::uint64_t number = 1; const auto& thing : things) {
      const Code code = conformance::code_of_call(thing);
      CHECK(code == (number++ == failure ? Code::out_of_memory : Code::success));
      if (code != Code::success) thing();  // that was all
    }
  }
}

TEST_CASE("processes share memory of virtual GPUs", "[device]") {
  conformance::check_sharing({[] { return make_virtual_driver(virtual_gpus(2)); }});
}

TEST_CASE("a process opens memory of its own virtual GPUs", "[device]") {
  const auto driver = make_virtual_driver(virtual_gpus(2));
  const auto memory = driver->allocate(0, 5000);
  const auto again = driver->open(1, memory->handle());
  CHECK(again->address() != memory->address());
  CHECK(driver->facts(again->address()).device == 0);
  // One memory, so that tools that follow accesses by their address see one.
  CHECK(driver->in_kernels(1, again->address()) == driver->in_kernels(0, memory->address()));
  const auto stream = driver->make_stream(0);
  stream->fill(memory->address(), std::byte{5}, 5000);
  stream->synchronize();
  CHECK(conformance::fetch(*driver, 1, again->address(), 5000) ==
        conformance::Bytes(5000, std::byte{5}));
}

TEST_CASE("memory of a virtual GPU that is out of reach is not opened", "[device]") {
  VirtualMachine machine = virtual_gpus(3);
  machine.reach[2][0] = false;
  const auto driver = make_virtual_driver(machine);
  conformance::check_reach(*driver);
  conformance::check_reach_of_all(*driver);
  const auto memory = driver->allocate(0, 4096);
  memory->allow_all();
  CHECK(driver->reach(0, memory->address()).devices == 3);
  const auto open = [&](int device, const MemoryHandle& handle) {
    return conformance::code_of_call([&] { driver->open(device, handle); });
  };
  CHECK(open(1, memory->handle()) == Code::success);
  CHECK(open(2, memory->handle()) == Code::invalid_usage);
  // Another process may have other devices, or be told of more than there is.
  VirtualMachine elsewhere = virtual_gpus(2);
  elsewhere.devices[0].bus_id = "0000:77:00.0";
  CHECK(conformance::code_of_call([&] {
          make_virtual_driver(elsewhere)->open(1, memory->handle());
        }) == Code::invalid_argument);
  MemoryHandle too_long = memory->handle();
  too_long.bytes = 4097;
  CHECK(open(1, too_long) != Code::success);
  MemoryHandle other = memory->handle();
  other.descriptor = Descriptor(::open("/dev/null", O_RDWR | O_CLOEXEC));
  CHECK(open(1, other) != Code::success);
}

TEST_CASE("host code that touches memory of a virtual GPU dies", "[device]") {
  const auto touch = [](auto&& access) {
    return test::Child([&] {
             // Whoever runs the tests may have taken the signal.
             const rlimit none{0, 0};
             ::setrlimit(RLIMIT_CORE, &none);
             ::signal(SIGSEGV, SIG_DFL);
             const auto driver = make_virtual_driver(virtual_gpus(2));
             const auto memory = driver->allocate(0, 10'000);
             memory->allow(1);
             access(reinterpret_cast<volatile char*>(memory->address()));
             return 0;
           })
        .wait();
  };
  CHECK(touch([](volatile char*) {}) == 0);
  CHECK(touch([](volatile char* at) { (void)at[0]; }) == -SIGSEGV);
  CHECK(touch([](volatile char* at) { at[9'999] = 1; }) == -SIGSEGV);
}

TEST_CASE("streams of virtual GPUs that are gone are known to be", "[device]") {
  const auto driver = make_virtual_driver(virtual_gpus(2)),
             other = make_virtual_driver(virtual_gpus(2));
  void* native = nullptr;
  std::unique_ptr<DeviceStream> borrowed;
  {
    const auto stream = driver->make_stream(0);
    native = stream->native();
    borrowed = driver->borrow_stream(0, native);
  }
  const auto again = driver->make_stream(0);
  using conformance::code_of_call;
  CHECK(code_of_call([&] { driver->borrow_stream(0, native); }) == Code::invalid_argument);
  CHECK(code_of_call([&] { driver->borrow_stream(0, &native); }) == Code::invalid_argument);
  CHECK(code_of_call([&] { other->borrow_stream(0, again->native()); }) == Code::invalid_argument);
  CHECK(code_of_call([&] { borrowed->call([] {}); }) == Code::invalid_usage);
}

TEST_CASE("a stream that waits for one that failed fails", "[device]") {
  const auto driver = make_virtual_driver(virtual_gpus(2));
  const auto failing = driver->make_stream(0), waiting = driver->make_stream(1);
  const auto event = driver->make_event(0);
  conformance::Gate gate;
  failing->call(gate.wait());
  failing->call([] { throw 1; });
  failing->record(*event);
  waiting->wait(*event);
  bool called = false;
  waiting->call([&] { called = true; });
  gate.open();
  using conformance::code_of_call;
  CHECK(code_of_call([&] { waiting->synchronize(); }) == Code::unhandled_device_error);
  CHECK(code_of_call([&] { event->synchronize(); }) == Code::unhandled_device_error);
  CHECK(code_of_call([&] { (void)event->complete(); }) == Code::unhandled_device_error);
  CHECK(!called);
  const auto other = driver->make_stream(0);
  other->record(*event);
  event->synchronize();
  CHECK(event->complete());
}

TEST_CASE("copies end where allocations do", "[device]") {
  const auto driver = make_virtual_driver(virtual_gpus(2));
  const auto memory = driver->allocate(0, 5000);
  const auto stream = driver->make_stream(0);
  conformance::Bytes host(5001);
  using conformance::code_of_call;
  const DeviceAddress there = memory->address(), here = conformance::address_of(host.data());
  CHECK(code_of_call([&] { stream->copy(here, there, 5001); }) == Code::invalid_argument);
  CHECK(code_of_call([&] { stream->copy(there + 1, here, 5000); }) == Code::invalid_argument);
  CHECK(code_of_call([&] { stream->fill(there + 4999, std::byte{1}, 2); }) ==
        Code::invalid_argument);
  CHECK(code_of_call([&] { stream->copy(here, there + 1, 4999); }) == Code::success);
  stream->synchronize();
}

TEST_CASE("machines that cannot be are refused", "[device]") {
  const auto refused = [](auto&& change) {
    VirtualMachine machine = virtual_gpus(2);
    change(machine);
    return conformance::code_of_call([&] { make_virtual_driver(machine); }) ==
           Code::invalid_argument;
  };
  CHECK(!refused([](VirtualMachine&) {}));
  CHECK(refused([](VirtualMachine& machine) { machine.reach.pop_back(); }));
  CHECK(refused([](VirtualMachine& machine) { machine.reach[1].push_back(true); }));
  CHECK(refused([](VirtualMachine& machine) { machine.devices[1] = machine.devices[0]; }));
  CHECK(refused([](VirtualMachine& machine) { machine.block_threads = 0; }));
  CHECK(refused([](VirtualMachine& machine) { machine.resident_blocks = 0; }));
}

TEST_CASE("virtual GPUs leave nothing open", "[device]") {
  const test::OpenThings before = test::open_things("khoro-virtual-gpu");
  {
    const auto driver = make_virtual_driver(virtual_gpus(2));
    conformance::check_driver(*driver);
    const auto memory = driver->allocate(0, 4096);
    CHECK(test::open_things("khoro-virtual-gpu").mappings > before.mappings);
  }
  CHECK(test::closed_again("khoro-virtual-gpu", before));
}
