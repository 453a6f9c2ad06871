// SPDX-License-Identifier: Apache-2.0
#include "communicator/control.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <atomic>

#include "rendezvous/host.h"
#include "support/catch.h"
#include "support/descriptors.h"

using namespace khoro;
using namespace std::chrono_literals;
using test::open_descriptors;

namespace {

/// Waits up to ten seconds.
template <class Condition>
bool eventually(Condition condition) {
  Time until = machine().now() + 10s;
  while (!condition() && machine().now() < until) ::poll(nullptr, 0, 1);
  return condition();
}

pid_t sleeping_child() {
  pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  return child;
}

Descriptor pidfd_of(pid_t process) {
  return Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
}

}  // namespace

TEST_CASE("the end of a process is told once, within 0.2 s", "[communicator]") {
  pid_t child = sleeping_child();
  Descriptor pidfd = pidfd_of(child), again = pidfd_of(child);
  Control control;
  std::atomic<int> calls{0};
  std::atomic<Time::rep> told{0};
  auto watch = control.when_ended(pidfd.number(), [&] {
    told = machine().now().count();
    ++calls;
  });
  ::poll(nullptr, 0, 50);
  CHECK(calls == 0);
  Time killed = machine().now();
  ::kill(child, SIGKILL);
  CHECK(eventually([&] { return calls == 1; }));
  CHECK(Time(told.load()) - killed < 200ms);
  // Not reaped yet, or ended long ago: a later watch hears of it too.
  auto late = control.when_ended(again.number(), [&] { ++calls; });
  CHECK(eventually([&] { return calls == 2; }));
  ::poll(nullptr, 0, 50);
  CHECK(calls == 2);
  ::waitpid(child, nullptr, 0);
}

TEST_CASE("times come in order, never early, and can be called off", "[communicator]") {
  Control control;
  std::mutex mutex;
  std::vector<int> order;
  std::atomic<bool> early{false};
  Time start = machine().now();
  auto note = [&](int number, Duration after) {
    return control.at(start + after, [&, number, after] {
      if (machine().now() < start + after) early = true;
      std::lock_guard lock(mutex);
      order.push_back(number);
    });
  };
  auto third = note(3, 60ms), first = note(1, 20ms), second = note(2, 40ms), past = note(0, -1s);
  { auto called_off = note(9, 30ms); }
  auto far = control.at(never, [] {});
  CHECK(eventually([&] {
    std::lock_guard lock(mutex);
    return order.size() == 4;
  }));
  CHECK(order == std::vector{0, 1, 2, 3});
  CHECK_FALSE(early);
}

TEST_CASE("once a watch is dropped its callback does not run and is not running",
          "[communicator]") {
  Control control;
  Descriptor bell(::eventfd(1, EFD_CLOEXEC));
  for (int round = 0; round < 200; ++round) {
    auto alive = std::make_unique<std::atomic<int>>(0);
    std::atomic<bool> ran{false};
    auto watch = control.while_readable(bell.number(), [&, state = alive.get()] {
      ++*state;
      ran = true;
    });
    REQUIRE(eventually([&] { return ran.load(); }));
    watch = Control::Watch();
    alive.reset();  // a callback that still ran would touch what is gone
  }
  CHECK(control.size() == 0);
}

TEST_CASE("a callback may drop its own watch and add another", "[communicator]") {
  Control control;
  std::atomic<int> calls{0};
  Control::Watch chain;
  std::function<void()> next = [&] {
    if (++calls < 100) chain = control.at(machine().now(), next);
  };
  auto first = control.at(machine().now(), [&] { next(); });
  CHECK(eventually([&] { return calls == 100; }));
  first = Control::Watch();
  CHECK(eventually([&] { return control.size() == 1; }));
}

TEST_CASE("watches come and go from many threads", "[communicator]") {
  int before = open_descriptors();
  {
    Control control;
    std::atomic<long> calls{0};
    on_all_ranks(4, [&](int) {
      Descriptor bell(::eventfd(1, EFD_CLOEXEC));
      for (int i = 0; i < 300; ++i) {
        auto ready = control.while_readable(bell.number(), [&] { ++calls; });
        auto time = control.at(machine().now() + i * 1us, [&] { ++calls; });
      }
      return 0;
    });
    CHECK(control.size() == 0);
  }
  CHECK(open_descriptors() == before);
}

TEST_CASE("a callback that throws does not end the control thread", "[communicator]") {
  Control control;
  std::atomic<bool> ran{false};
  auto bad = control.at(machine().now(), [] { throw std::runtime_error("expected in this test"); });
  auto good = control.at(machine().now() + 10ms, [&] { ran = true; });
  CHECK(eventually([&] { return ran.load(); }));
}

TEST_CASE("the control thread serves a meeting, and is not woken by it once it is over",
          "[communicator]") {
  Control control;
  for (bool fails : {false, true}) {
    UniqueId id = UniqueId::draw();
    Meeting meeting(id);
    std::atomic<bool> over{false};
    std::atomic<int> calls_when_over{0};
    auto watch = control.while_readable(meeting.descriptor(), [&] {
      if (over) ++calls_when_over;
      meeting.advance();
      over = meeting.over();
    });
    if (fails) {
      Outcome outcome = outcome_of([&] { join(id, guest(0, 2), in_seconds(0.1)); });
      CHECK(outcome.code == Code::timeout);
    } else {
      for (auto& outcome : join_all(id, 4)) CHECK(outcome.text == "");
    }
    CHECK(eventually([&] { return over.load(); }));
    ::poll(nullptr, 0, 100);
    CHECK(calls_when_over == 0);
  }
}

TEST_CASE("an idle control thread uses no processor time", "[communicator]") {
  Control control;
  pid_t child = sleeping_child();
  Descriptor pidfd = pidfd_of(child);
  auto watch = control.when_ended(pidfd.number(), [] {});
  Meeting meeting(UniqueId::draw());
  auto open = control.while_readable(meeting.descriptor(), [&] { meeting.advance(); });
  auto used = [] {
    rusage usage;
    ::getrusage(RUSAGE_SELF, &usage);
    return usage.ru_utime.tv_sec * 1'000'000 + usage.ru_utime.tv_usec +
           usage.ru_stime.tv_sec * 1'000'000 + usage.ru_stime.tv_usec;
  };
  auto before = used();
  ::poll(nullptr, 0, 1000);
  CHECK(used() - before < 20'000);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST_CASE("a forked child neither hangs nor disturbs its parent's watches", "[communicator]") {
  Control control;
  Descriptor bell(::eventfd(0, EFD_CLOEXEC));
  std::atomic<int> calls{0};
  auto watch = std::make_unique<Control::Watch>(control.while_readable(bell.number(), [&] {
    std::uint64_t value;
    [[maybe_unused]] auto size = ::read(bell.number(), &value, sizeof value);
    ++calls;
  }));
  pid_t child = ::fork();
  if (child == 0) {
    watch.reset();
    bool refused = false;
    try {
      auto another = control.at(machine().now(), [] {});
    } catch (const Error& error) {
      refused = error.code() == Code::invalid_usage;
    }
    ::_exit(refused ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  std::uint64_t one = 1;
  CHECK(::write(bell.number(), &one, sizeof one) == sizeof one);
  CHECK(eventually([&] { return calls == 1; }));
}
