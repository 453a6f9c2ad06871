// SPDX-License-Identifier: Apache-2.0
// The driver of CUDA's GPUs over a fake of CUDA's driver, which must be the first that is found.
#include <cuda.h>
#include <dlfcn.h>

#include <cstring>
#include <string>

#include "conformance/driver.h"
#include "device/cuda/driver.h"
#include "support/open_things.h"
#include "support/scoped_environment.h"

using namespace khoro;
using conformance::code_of_call;
using test::ScopedEnvironment;

namespace {

/// What the fake has for tests.
template <class Function>
Function* fake(const char* name) {
  void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  auto* const found = reinterpret_cast<Function*>(::dlsym(library, name));
  REQUIRE(found != nullptr);
  return found;
}
void fail_at(int call) { fake<void(int)>("fake_cuda_fail_at")(call); }
int calls() { return fake<int()>("fake_cuda_calls")(); }
int open() { return fake<int()>("fake_cuda_open")(); }

std::unique_ptr<Driver> open_driver() {
  std::string why_not;
  std::unique_ptr<Driver> driver = open_cuda_driver(why_not);
  if (driver == nullptr) throw Error(Code::unhandled_device_error, why_not);
  return driver;
}

std::string why_not() {
  std::string words;
  CHECK(open_cuda_driver(words) == nullptr);
  CHECK(open() == 0);
  return words;
}

constexpr char code[] = "fake";
const KernelImage image{std::as_bytes(std::span(code)), {}};

/// Uses everything once. Checks nothing while something could throw: a check would catch it.
void tour(const MemoryHandle& foreign) {
  const auto driver = open_driver();
  const auto memory = driver->allocate(0, 5000);
  const auto far = driver->allocate(1, 5000);
  if (driver->reaches(1, 0)) memory->allow(1);
  far->allow_all();
  (void)memory->handle();
  const auto opened = driver->open(0, foreign);
  (void)driver->in_kernels(1, memory->address());
  (void)driver->facts(far->address());
  conformance::Pages pages(2);
  const auto pinned = driver->pin(pages.bytes());
  (void)driver->in_kernels(1, pinned->address());
  const auto stream = driver->make_stream(0);
  const auto borrowed = driver->borrow_stream(0, stream->native());
  const auto first = driver->make_event(0), second = driver->make_event(0);
  stream->record(*first);
  stream->copy(memory->address(), pinned->address(), 5000);
  stream->fill(memory->address(), std::byte{1}, 5000);
  bool called = false;
  stream->call([&] { called = true; });
  borrowed->wait(*first);
  stream->record(*second);
  const Kernel& kernel = driver->kernel(0, image, "store");
  const int blocks = kernel.resident_blocks(512, 100 << 10);
  const DeviceAddress where = driver->in_kernels(0, memory->address());
  stream->launch({&kernel, 3, 96, 60 << 10, std::as_bytes(std::span(&where, 1))});
  stream->synchronize();
  const bool idle = stream->idle();
  second->synchronize();
  const bool complete = second->complete();
  std::array<std::uint64_t, 3> seen{};
  stream->copy(conformance::address_of(seen.data()), memory->address(), sizeof seen);
  stream->synchronize();
  CHECK(blocks == 4 * 7);
  CHECK(idle);
  CHECK(complete);
  CHECK(called);
  CHECK(seen == std::array<std::uint64_t, 3>{3, 96, 60 << 10});
}

/// Memory of another process, which lives as long as this does.
class Foreign {
 public:
  Foreign() {
    std::array<int, 2> ends{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0);
    here_ = Descriptor(ends[0]);
    const Descriptor there(ends[1]);
    child_ = std::make_unique<test::Child>([&] {
      here_ = Descriptor();
      const auto driver = open_driver();
      const auto memory = driver->allocate(1, 5000);
      const MemoryHandle handle = memory->handle();
      const int number = handle.descriptor.number();
      const std::span<const int> numbers(&number, handle.descriptor ? 1 : 0);
      if (send_packet(there, handle.words, numbers) != PacketStatus::done) return 1;
      char end = 0;
      return ::read(there.number(), &end, 1) == 0 ? 0 : 2;
    });
    std::vector<Descriptor> descriptors;
    REQUIRE(receive_packet(here_, handle.words, descriptors, 1) == PacketStatus::done);
    handle.bytes = 5000;
    if (!descriptors.empty()) handle.descriptor = std::move(descriptors.front());
  }
  ~Foreign() {
    here_ = Descriptor();
    CHECK(child_->wait() == 0);
  }

  MemoryHandle handle;

 private:
  Descriptor here_;
  std::unique_ptr<test::Child> child_;
};

/// Both kinds of memory of devices.
template <class Function>
void for_each_kind(Function&& function) {
  for (const char* mapped : {"1", "0"}) {
    const ScopedEnvironment environment("FAKE_CUDA_MAPPED", mapped);
    INFO("mapped: " << mapped);
    function();
    CHECK(open() == 0);
  }
}

}  // namespace

TEST_CASE("CUDA's GPUs keep what drivers promise", "[device]") {
  for_each_kind([] {
    const auto driver = open_driver();
    CHECK(driver->name() == "cuda");
    conformance::check_driver(*driver);
    conformance::check_exhaustion(*driver);
  });
}

TEST_CASE("processes share memory of CUDA's GPUs", "[device]") {
  for_each_kind([] { conformance::check_sharing({&open_driver}); });
}

TEST_CASE("CUDA's GPUs that do not reach each other", "[device]") {
  const ScopedEnvironment environment("FAKE_CUDA_REACH", "0");
  for_each_kind([] {
    const Foreign foreign;
    const auto driver = open_driver();
    CHECK(!driver->reaches(0, 1));
    conformance::check_driver(*driver);
    if (foreign.handle.descriptor)
      CHECK(code_of_call([&] { driver->open(0, foreign.handle); }) == Code::invalid_usage);
    CHECK(code_of_call([&] { driver->open(1, foreign.handle); }) == Code::success);
  });
}

TEST_CASE("a machine without a GPU, or whose driver is too old, is told of", "[device]") {
  {
    const ScopedEnvironment environment("FAKE_CUDA_DEVICES", "0");
    CHECK(why_not() == "there is a driver of GPUs, but no GPU");
  }
  const ScopedEnvironment environment("FAKE_CUDA_VERSION", "11040");
  CHECK(why_not() == "the driver of GPUs is for CUDA 11.4, and this build needs " +
                         std::to_string(CUDA_VERSION / 1000) + ".0 or newer");
}

TEST_CASE("facts of CUDA's GPUs", "[device]") {
  const auto driver = open_driver();
  const DeviceFacts facts = driver->facts(1);
  CHECK(facts.name == "Fake GPU 1");
  CHECK(facts.bus_id == "0000:a1:00.0");
  CHECK(facts.memory_bytes == 64 << 20);
  CHECK(facts.multiprocessors == 7);
  CHECK(facts.capability == 90);
  CHECK(open() == 0);  // contexts are made where they are needed
}

TEST_CASE("CUDA is asked once what kernels reach at an address", "[device]") {
  const auto driver = open_driver();
  const auto memory = driver->allocate(0, 5000);
  conformance::Pages pages(1);
  const auto pinned = driver->pin(pages.bytes());
  const auto calls_of = [](auto&& ask) {
    fail_at(0);
    ask();
    return calls();
  };
  for (const DeviceAddress address : {memory->address(), pinned->address()})
    CHECK(calls_of([&] { (void)driver->reach(0, address); }) ==
          calls_of([&] { (void)driver->facts(address); }));
}

TEST_CASE("memory that is mapped is let to all of CUDA's GPUs, used or not", "[device]") {
  const auto driver = open_driver();
  const auto memory = driver->allocate(0, 5000);
  const int before = open();
  memory->allow_all();
  CHECK(driver->reach(0, memory->address() + 4999).devices == 3);
  CHECK(open() == before);  // no context was made
}

TEST_CASE("kernels of CUDA's GPUs that are not there", "[device]") {
  const auto driver = open_driver();
  constexpr char broken[] = "none";
  const KernelImage other{std::as_bytes(std::span(broken)), {}};
  CHECK(code_of_call([&] { (void)driver->kernel(0, image, "load"); }) == Code::invalid_argument);
  CHECK(code_of_call([&] { (void)driver->kernel(0, other, "store"); }) ==
        Code::unhandled_device_error);
  CHECK(&driver->kernel(0, image, "store") == &driver->kernel(0, image, "store"));
  const auto stream = driver->make_stream(1);
  const Launch launch{&driver->kernel(0, image, "store"), 1, 1, 0, {}};
  CHECK(code_of_call([&] { stream->launch(launch); }) == Code::invalid_argument);
}

TEST_CASE("the caller's CUDA context stays current", "[device]") {
  auto* const push = fake<CUresult(CUcontext)>("cuCtxPushCurrent_v2");
  auto* const pop = fake<CUresult(CUcontext*)>("cuCtxPopCurrent_v2");
  auto* const current = fake<CUresult(CUcontext*)>("cuCtxGetCurrent");
  const Foreign foreign;
  CUcontext seen = nullptr;
  const auto mine = reinterpret_cast<CUcontext>(&seen);
  for (const CUcontext context : {CUcontext{nullptr}, mine}) {
    if (context != nullptr) push(context);
    tour(foreign.handle);
    current(&seen);
    CHECK(seen == context);
  }
  pop(&seen);
}

TEST_CASE("whichever call of CUDA fails, nothing is left behind", "[device]") {
  for_each_kind([] {
    const Foreign foreign;
    tour(foreign.handle);
    fail_at(0);
    tour(foreign.handle);
    const int all = calls();
    CHECK(all > 80);
    const test::OpenThings before = test::open_things("fake-cuda");
    int quiet = 0;
    for (int call = 1; call <= all; ++call) {
      INFO("call " << call << " of " << all);
      fail_at(call);
      Code seen = Code::success;
      try {
        tour(foreign.handle);
      } catch (const Error& error) {
        seen = error.code();
        CHECK(std::string(error.what()).size() > 20);
      }
      fail_at(0);
      if (seen == Code::success) ++quiet;
      CHECK(open() == 0);
      REQUIRE(test::closed_again("fake-cuda", before));
    }
    // Those of things that end.
    CHECK(quiet < all / 3);
  });
}
