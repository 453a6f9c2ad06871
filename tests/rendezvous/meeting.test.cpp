// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/meeting.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <array>
#include <set>

#include "base/random.h"
#include "rendezvous/host.h"
#include "support/captured_log.h"
#include "support/catch.h"
#include "support/descriptors.h"

using namespace khoro;
using test::CapturedLog;
using test::open_descriptors;

namespace {

/// A joined rank found everybody, each with its own memory and doorbell.
bool is_complete(const Membership& membership, const UniqueId& id, int ranks) {
  if (membership.communicator != id.communicator) return false;
  if (membership.members.size() != static_cast<std::size_t>(ranks)) return false;
  for (int rank = 0; rank < ranks; ++rank) {
    const Introduction& member = membership.members[static_cast<std::size_t>(rank)];
    if (member.rank != rank || rank_in(member) != rank || !member.doorbell) return false;
  }
  return true;
}

/// Forks a process that runs `function` and exits with what it returns.
template <class Function>
pid_t spawn(Function function) {
  pid_t child = ::fork();
  if (child != 0) return child;
  int status = 99;
  try {
    status = function();
  } catch (...) {
  }
  ::_exit(status);
}

int exit_status(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

TEST_CASE("threads of one process meet, for every number of ranks", "[rendezvous]") {
  int before = open_descriptors();
  for (int ranks : {1, 2, 3, 5, 8, 16, 17, 64}) {
    UniqueId id = UniqueId::draw();
    Host host(id);
    auto complete = on_all_ranks(ranks, [&](int rank) {
      return is_complete(join(id, guest(rank, ranks), in_seconds(20)), id, ranks);
    });
    CHECK(std::count(complete.begin(), complete.end(), true) == ranks);
    CHECK(host.ends_within(5));
  }
  CHECK(open_descriptors() == before);
}

TEST_CASE("64 ranks meet in well below a second", "[rendezvous]") {
  UniqueId id = UniqueId::draw();
  Host host(id);
  Time start = machine().now();
  for (auto& outcome : join_all(id, 64)) CHECK(outcome.text.empty());
  double seconds = std::chrono::duration<double>(machine().now() - start).count();
  WARN("64 ranks met in " << seconds * 1000 << " ms");
  CHECK(seconds < 10);  // generous: sanitizers and a loaded machine
}

TEST_CASE("processes and threads meet, and each other process is watched once", "[rendezvous]") {
  // Two processes of two ranks each, ranks 0 and 1 here, 2 and 3 there.
  UniqueId id = UniqueId::draw();
  auto pidfds = [&](int first) {
    auto found = on_all_ranks(2, [&](int thread) {
      Membership membership = join(id, guest(first + thread, 4), in_seconds(20));
      if (!is_complete(membership, id, 4)) return -1;
      int bits = 0;
      for (auto& member : membership.members) bits |= (member.pidfd ? 1 : 0) << member.rank;
      return bits;
    });
    return found[0] == found[1] ? found[0] : -1;
  };
  pid_t child = spawn([&] {
    UniqueId late = id;
    late.host_may_be_late = true;
    id = late;
    return pidfds(2) == 1 ? 0 : 1;
  });
  Host host(id);
  CHECK(pidfds(0) == 4);
  CHECK(exit_status(child) == 0);
}

TEST_CASE("a joiner may come before the host if the id says so", "[rendezvous]") {
  UniqueId id = UniqueId::of_job(Key{1, 2, 3, 4}, draw_random());
  auto early = std::async(std::launch::async, [&] { return join_all(id, 2); });
  ::poll(nullptr, 0, 100);
  Host host(id);
  for (auto& outcome : early.get()) CHECK(outcome.text.empty());

  Outcome alone = outcome_of(
      [] { join(UniqueId::of_job(Key{9}, draw_random()), guest(1, 2), in_seconds(0.2)); });
  CHECK(alone.code == Code::timeout);
  CHECK_THAT(alone.text, Catch::Contains("rank 0 did not open the meeting"));
}

TEST_CASE("an id whose meeting is over is refused at once", "[rendezvous]") {
  UniqueId id = UniqueId::draw();
  {
    Host host(id);
    join_all(id, 2);
    CHECK(host.ends_within(5));
  }
  Outcome late = outcome_of([&] { join(id, guest(0, 2), in_seconds(20)); });
  CHECK(late.code == Code::invalid_usage);
  CHECK_THAT(late.text, Catch::Contains(id.fingerprint()) && Catch::Contains("needs a new id"));
}

TEST_CASE("a meeting to which nobody comes ends at its deadline, and says so to who is late",
          "[rendezvous]") {
  UniqueId id = UniqueId::draw();
  {
    Host host(id, machine().now());
    Outcome late = outcome_of([&] { join(id, guest(0, 2), in_seconds(20)); });
    CHECK(late.code == Code::timeout);
    CHECK_THAT(late.text, Catch::Contains("no rank came") && Catch::Contains("make a new id"));
    CHECK(host.ends_within(10));
  }
  Outcome later = outcome_of([&] { join(id, guest(0, 2), in_seconds(20)); });
  CHECK(later.code == Code::invalid_usage);
  CHECK_THAT(later.text, Catch::Contains("nobody came to it before its deadline"));
}

TEST_CASE("once a rank has come the deadlines of the ranks count", "[rendezvous]") {
  UniqueId id = UniqueId::draw();
  Host host(id, in_seconds(0.5));
  auto first = std::async(std::launch::async, [&] {
    return outcome_of([&] { join(id, guest(0, 2), in_seconds(20)); });
  });
  CHECK(host.sees(1));
  ::poll(nullptr, 0, 1'000);
  CHECK(outcome_of([&] { join(id, guest(1, 2), in_seconds(20)); }).text.empty());
  CHECK(first.get().text.empty());
}

TEST_CASE("the ranks that do not come are named to all who came", "[rendezvous]") {
  UniqueId id = UniqueId::draw();
  Host host(id);
  std::set<int> absent{1, 3, 4, 5};
  auto outcomes = on_all_ranks(7, [&](int rank) {
    if (absent.count(rank)) return Outcome{};
    // One is less patient than the others: its deadline ends the meeting.
    return outcome_of([&] { join(id, guest(rank, 7), in_seconds(rank == 2 ? 0.3 : 30)); });
  });
  for (int rank : {0, 2, 6}) {
    CHECK(outcomes[static_cast<std::size_t>(rank)].code == Code::timeout);
    CHECK_THAT(outcomes[static_cast<std::size_t>(rank)].text,
               Catch::Contains("ranks 1, 3-5 of 7 did not come"));
  }
  // Who comes a little too late is told the same.
  Outcome late = outcome_of([&] { join(id, guest(3, 7), in_seconds(30)); });
  CHECK_THAT(late.text, Catch::Contains("ranks 1, 3-5 of 7"));
  CHECK(host.ends_within(10));
}

TEST_CASE("a rank that dies during the meeting fails it for all within a second", "[rendezvous]") {
  UniqueId id = UniqueId::draw();
  id.host_may_be_late = true;
  pid_t child = spawn([&] {
    join(id, guest(2, 4), in_seconds(30));
    return 0;
  });
  Host host(id);
  Time killed{};
  auto outcomes = on_all_ranks(3, [&](int rank) {
    if (rank == 2) {
      host.sees(3);
      killed = machine().now();
      ::kill(child, SIGKILL);
      return Outcome{};
    }
    return outcome_of([&] { join(id, guest(rank, 4), in_seconds(30)); });
  });
  CHECK(machine().now() - killed < std::chrono::seconds(1));
  CHECK(exit_status(child) == 128 + SIGKILL);
  for (int rank : {0, 1}) {
    CHECK(outcomes[static_cast<std::size_t>(rank)].code == Code::peer_died);
    CHECK_THAT(outcomes[static_cast<std::size_t>(rank)].text,
               Catch::Contains("rank 2 (process " + std::to_string(child) + ") died"));
  }
}

TEST_CASE("a dead rank is found although a child of it holds its socket", "[rendezvous]") {
  UniqueId id = UniqueId::draw();
  id.host_may_be_late = true;
  int pipe[2];
  REQUIRE(::pipe(pipe) == 0);
  pid_t child = spawn([&] {
    std::thread joiner([&] { outcome_of([&] { join(id, guest(1, 3), in_seconds(30)); }); });
    ::close(pipe[1]);
    char byte;
    if (::read(pipe[0], &byte, 1) != 1) ::_exit(1);
    pid_t heir = ::fork();  // has a copy of every descriptor, and lives until the pipe is closed
    if (heir == 0) ::_exit(static_cast<int>(::read(pipe[0], &byte, 1)));
    ::_exit(0);
    return 0;
  });
  Host host(id);
  auto survivor = std::async(std::launch::async, [&] {
    return outcome_of([&] { join(id, guest(0, 3), in_seconds(30)); });
  });
  CHECK(host.sees(2));
  CHECK(::write(pipe[1], "x", 1) == 1);
  Outcome outcome = survivor.get();
  ::close(pipe[1]);
  ::close(pipe[0]);
  CHECK(exit_status(child) == 0);
  CHECK(outcome.code == Code::peer_died);
}

TEST_CASE("the death of the host ends the wait of those who came", "[rendezvous]") {
  UniqueId id = UniqueId::draw();
  id.host_may_be_late = true;
  pid_t child = spawn([&] {
    Host host(id);
    ::_exit(host.sees(1) ? 0 : 1);
    return 0;
  });
  Outcome outcome = outcome_of([&] { join(id, guest(1, 2), in_seconds(30)); });
  CHECK(exit_status(child) == 0);
  CHECK(outcome.code == Code::peer_died);
  CHECK_THAT(outcome.text, Catch::Contains("serves the meeting died"));
}

TEST_CASE("a rank that declines, or fails to prepare, is named with its reason", "[rendezvous]") {
  std::string reason = "no memory for " + std::string(500, 'x') + " at the end";
  for (bool meets_first : {false, true}) {
    UniqueId id = UniqueId::draw();
    Host host(id);
    auto outcomes = on_all_ranks(3, [&](int rank) {
      Error error(Code::out_of_memory, reason);
      if (rank == 1 && !meets_first) {
        decline(id, 3, 1, error, in_seconds(20));
        return Outcome{};
      }
      auto prepare = [&](Membership&) {
        if (rank == 1) throw error;
      };
      return outcome_of([&] { join(id, guest(rank, 3), in_seconds(20), prepare); });
    });
    if (meets_first) CHECK(outcomes[1].code == Code::out_of_memory);
    for (std::size_t rank : {0, 2}) {
      CHECK(outcomes[rank].code == Code::remote_error);
      CHECK(outcomes[rank].text == "rank 1 failed: " + reason);
    }
    CHECK(host.ends_within(10));
  }
}

TEST_CASE("who knows of a rank's death can tell the meeting in its place", "[rendezvous]") {
  UniqueId id = UniqueId::draw();
  Host host(id);
  auto outcomes = on_all_ranks(3, [&](int rank) {
    if (rank != 1) return outcome_of([&] { join(id, guest(rank, 3), in_seconds(20)); });
    decline(id, 3, 1, Error(Code::peer_died, "rank 1 fell off a cliff"), in_seconds(20));
    return Outcome{};
  });
  for (std::size_t rank : {0, 2}) {
    CHECK(outcomes[rank].code == Code::peer_died);
    CHECK(outcomes[rank].text == "rank 1 fell off a cliff");
  }
  CHECK(host.ends_within(10));
}

TEST_CASE("a meeting that is called off tells those who are there and those who come",
          "[rendezvous]") {
  UniqueId id = UniqueId::draw();
  Meeting meeting(id);
  std::atomic<bool> called_off{false};
  auto outcomes = std::async(std::launch::async, [&] {
    return on_all_ranks(3, [&](int rank) {
      while (rank == 2 && !called_off) ::poll(nullptr, 0, 1);
      return outcome_of([&] { join(id, guest(rank, 3), in_seconds(20)); });
    });
  });
  Time start = machine().now();
  while (!meeting.over() && machine().now() - start < std::chrono::seconds(10)) {
    pollfd one{meeting.descriptor(), POLLIN, 0};
    ::poll(&one, 1, 20);
    meeting.advance();
    if (machine().now() - start > std::chrono::milliseconds(100) && !called_off.exchange(true))
      meeting.call_off(Error(Code::peer_died, "rank 0 is no more"));
  }
  CHECK(meeting.over());
  for (auto& outcome : outcomes.get()) {
    CHECK(outcome.code == Code::peer_died);
    CHECK(outcome.text == "rank 0 is no more");
  }
}

TEST_CASE("nobody is let go before all are prepared", "[rendezvous]") {
  UniqueId id = UniqueId::draw();
  Host host(id);
  std::atomic<int> prepared{0};
  auto seen = on_all_ranks(4, [&](int rank) {
    join(id, guest(rank, 4), in_seconds(20), [&](Membership&) {
      ::poll(nullptr, 0, 20 * rank);
      ++prepared;
    });
    return prepared.load();
  });
  for (int count : seen) CHECK(count == 4);
}

TEST_CASE("facts that differ are named with both values", "[rendezvous]") {
  UniqueId id = UniqueId::draw();
  Host host(id);
  std::string filler = "filler=" + std::string(1000, 'x') + "\n";
  auto outcomes = on_all_ranks(3, [&](int rank) {
    std::string facts = filler + (rank == 2 ? "KHORO_SLOTS=4\n" : "KHORO_SLOTS=8\n") + "last=1\n";
    return outcome_of([&] { join(id, guest(rank, 3, facts), in_seconds(20)); });
  });
  for (auto& outcome : outcomes) {
    CHECK(outcome.code == Code::mismatch);
    CHECK_THAT(outcome.text, Catch::Contains("KHORO_SLOTS is '") &&
                                 Catch::Contains("'4' on rank 2") &&
                                 Catch::Contains("'8' on rank "));
  }
}

TEST_CASE("ranks that disagree on how many they are all hear of it", "[rendezvous]") {
  UniqueId id = UniqueId::draw();
  Host host(id);
  auto outcomes = on_all_ranks(2, [&](int rank) {
    return outcome_of([&] { join(id, guest(rank, rank == 0 ? 3 : 4), in_seconds(20)); });
  });
  for (auto& outcome : outcomes) {
    CHECK(outcome.code == Code::invalid_argument);
    CHECK_THAT(outcome.text, Catch::Contains("that there are 4") || Catch::Contains("there are 4"));
  }
}

TEST_CASE("a second rank of the same number is refused and the meeting goes on", "[rendezvous]") {
  UniqueId id = UniqueId::draw();
  CapturedLog log;
  Host host(id);
  auto first = std::async(std::launch::async, [&] {
    return outcome_of([&] { join(id, guest(0, 2), in_seconds(20)); });
  });
  CHECK(host.sees(1));
  Outcome second = outcome_of([&] { join(id, guest(0, 2), in_seconds(20)); });
  CHECK(second.code == Code::invalid_argument);
  CHECK_THAT(second.text, Catch::Contains("rank 0 is here already"));
  CHECK(log.count("refused process") == 1);
  CHECK(outcome_of([&] { join(id, guest(1, 2), in_seconds(20)); }).text.empty());
  CHECK(first.get().text.empty());
}

TEST_CASE("a rank out of range is refused before it connects", "[rendezvous]") {
  UniqueId id = UniqueId::draw();
  Host host(id);
  for (int rank : {-1, 2, 1'000'000}) {
    Outcome outcome = outcome_of([&] { join(id, guest(rank, 2), in_seconds(20)); });
    CHECK(outcome.code == Code::invalid_argument);
  }
}

TEST_CASE("a place that is taken is an error with its name", "[rendezvous]") {
  UniqueId id = UniqueId::draw();
  Meeting meeting(id);
  CHECK_THROWS_WITH(Meeting(id),
                    Catch::Contains("@" + id.socket) && Catch::Contains("Address already in use"));
}

TEST_CASE("a meeting in a process without descriptors fails with a reason", "[rendezvous]") {
  UniqueId id = UniqueId::draw();
  Host host(id);
  pid_t child = spawn([&] {
    rlimit limit{static_cast<rlim_t>(open_descriptors() + 8),
                 static_cast<rlim_t>(open_descriptors() + 8)};
    ::setrlimit(RLIMIT_NOFILE, &limit);
    Outcome outcome = outcome_of([&] { join(id, guest(8, 9), in_seconds(20)); });
    return outcome.code == Code::system_error && outcome.text.find("ulimit -n") != std::string::npos
               ? 0
               : 1;
  });
  auto outcomes = on_all_ranks(
      8, [&](int rank) { return outcome_of([&] { join(id, guest(rank, 9), in_seconds(20)); }); });
  CHECK(exit_status(child) == 0);
  for (auto& outcome : outcomes) {
    CHECK(outcome.code == Code::remote_error);
    CHECK_THAT(outcome.text, Catch::Contains("rank 8 failed: no descriptors are left"));
  }
}
