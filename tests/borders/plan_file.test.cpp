// SPDX-License-Identifier: Apache-2.0
// A plan goes out as text, comes back through KHORO_TEST_PLAN_FILE, and runs behind the C face.
#include <fmt/format.h>
#include <khoro/khoro.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "algorithms/algorithm.h"
#include "base/log.h"
#include "plan/image.h"
#include "plan/text.h"
#include "plan/verify.h"
#include "support/captured_log.h"
#include "support/catch.h"
#include "support/mutants.h"
#include "support/scoped_environment.h"

using namespace khoro;
using test::CapturedLog;
using test::ScopedEnvironment;

#ifdef KHORO_TEST_SWITCHES
namespace {

constexpr int ranks = 3;
/// Elements of a block. All chunks are of one size: a message of another size than its step expects
/// would be refused at once.
constexpr std::size_t count = 960;

/// A file with a plan's text, while it lasts.
class PlanFile {
 public:
  explicit PlanFile(const Plan& plan) {
    const int descriptor = ::mkstemp(path_);
    REQUIRE(descriptor >= 0);
    const std::string text = print(plan);
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    ::close(descriptor);
    REQUIRE(written == static_cast<ssize_t>(text.size()));
  }
  ~PlanFile() { ::unlink(path_); }
  PlanFile(const PlanFile&) = delete;
  PlanFile& operator=(const PlanFile&) = delete;
  const char* path() const { return path_; }

 private:
  char path_[32] = "/tmp/khoro-plan-XXXXXX";
};

using Vector = std::vector<std::int64_t>;

std::int64_t value(int rank, std::size_t i) {
  return std::int64_t(i * 2654435761u) * (rank + 1) - rank;
}

khoroResult_t call(CollectiveKind kind, const Vector& in, Vector& out, khoroComm_t comm) {
  switch (kind) {
    case CollectiveKind::allreduce:
      return khoroAllReduce(in.data(), out.data(), count, khoroInt64, khoroSum, comm, nullptr);
    case CollectiveKind::broadcast:
      return khoroBroadcast(in.data(), out.data(), count, khoroInt64, 0, comm, nullptr);
    case CollectiveKind::allgather:
      return khoroAllGather(in.data(), out.data(), count, khoroInt64, comm, nullptr);
    case CollectiveKind::reducescatter:
      return khoroReduceScatter(in.data(), out.data(), count, khoroInt64, khoroSum, comm, nullptr);
    case CollectiveKind::reduce:
      return khoroReduce(in.data(), out.data(), count, khoroInt64, khoroSum, 0, comm, nullptr);
    case CollectiveKind::gather:
      return khoroGather(in.data(), out.data(), count, khoroInt64, 0, comm, nullptr);
    case CollectiveKind::scatter:
      return khoroScatter(in.data(), out.data(), count, khoroInt64, 0, comm, nullptr);
    case CollectiveKind::alltoall:
      return khoroAlltoAll(in.data(), out.data(), count, khoroInt64, comm, nullptr);
    case CollectiveKind::barrier:
      break;
  }
  return khoroBarrier(comm, nullptr);
}

/// Every element is a chunk of its own.
Vector expected(const Collective& collective, int rank) {
  if (collective.kind == CollectiveKind::barrier) return {};
  const int chunks = collective.blocks() * int(count);
  Vector out(std::size_t(collective.output_chunks(chunks)));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto need = collective.requirement(rank, int(i), chunks);
    for (int from = 0; need && from < ranks; ++from)
      if (need->from == from || need->from == Requirement::all_ranks)
        out[i] += value(from, std::size_t(need->chunk));
  }
  return out;
}

struct Result {
  khoroResult_t result = khoroSuccess;
  std::string words;
  Vector out;
};

/// One call by ranks that are threads, with a deadline that only a call that hangs comes to.
std::vector<Result> run(CollectiveKind kind, const PlanFile& file, int deadline_ms,
                        int slots = Shape{}.slots) {
  const ScopedEnvironment plan("KHORO_TEST_PLAN_FILE", file.path());
  const ScopedEnvironment few("KHORO_SLOTS", std::to_string(slots));
  std::vector<Result> results(ranks);
  khoroComm_t comms[ranks];
  REQUIRE(khoroCommInitAllHost(comms, ranks) == khoroSuccess);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      Result& result = results[std::size_t(rank)];
      Vector in(count * std::size_t(Collective{kind, ranks}.input_blocks()));
      for (std::size_t i = 0; i < in.size(); ++i) in[i] = value(rank, i);
      result.out.resize(expected({kind, ranks}, rank).size());
      khoroCommSetDeadline(comms[rank], deadline_ms);
      result.result = call(kind, in, result.out, comms[rank]);
      if (result.result != khoroSuccess) result.words = khoroGetLastError(comms[rank]);
    });
  for (std::thread& thread : threads) thread.join();
  for (khoroComm_t comm : comms) CHECK(khoroCommDestroy(comm) == khoroSuccess);
  return results;
}

Plan plan_of(const Algorithm& algorithm) {
  return make_plan(algorithm, {algorithm.collective, ranks}, Topology::one_machine(ranks), Shape{});
}

/// The log level is the process's: it goes back to what the other tests expect.
struct LogInfo {
  ScopedEnvironment environment{"KHORO_LOG", "info"};
  CapturedLog lines;
  ~LogInfo() { set_log_level(LogLevel::warn); }
};

}  // namespace

TEST_CASE("every plan runs from its text, and the log has the hashes of its programs",
          "[borders]") {
  for (const Algorithm* algorithm : algorithms()) {
    const Plan plan = plan_of(*algorithm);
    INFO(plan.name());
    const PlanFile file(plan);
    const LogInfo log;
    const std::vector<Result> results = run(algorithm->collective, file, 60'000);
    for (int rank = 0; rank < ranks; ++rank) {
      INFO("rank " << rank << ": " << results[std::size_t(rank)].words);
      CHECK(results[std::size_t(rank)].result == khoroSuccess);
      CHECK(results[std::size_t(rank)].out == expected({algorithm->collective, ranks}, rank));
      CHECK(log.lines.count(fmt::format("rank {}: plan {} ranks {} program hash {:016x}: given",
                                        rank, plan.name(), ranks, flatten(plan, rank).hash)) == 1);
    }
  }
}

TEST_CASE("a mutant that must hang ends at the deadline", "[borders]") {
  const Algorithm& ring = *find_algorithm(CollectiveKind::allreduce, "ring");
  int hung = 0;
  for (const test::Mutant& mutant : test::mutants_of(plan_of(ring), ring.least_slots)) {
    if (mutant.kind() != "drop a send" || hung == 2) continue;
    const Verdict verdict = verify(mutant.plan, {.slots = 8});
    if (!verdict.found || !verdict.found->outcome.hangs) continue;
    INFO(mutant.description);
    const CapturedLog quiet;
    int timeouts = 0;
    for (const Result& result : run(CollectiveKind::allreduce, PlanFile(mutant.plan), 300)) {
      INFO(result.words);
      if (result.result == khoroSuccess) continue;  // a rank that lacks nothing
      CHECK(result.result == khoroTimeout);
      CHECK(result.words.find("allreduce") != std::string::npos);
      ++timeouts;
    }
    CHECK(timeouts > 0);
    ++hung;
  }
  CHECK(hung == 2);
}

TEST_CASE("a plan with fewer slots than it needs hangs to the deadline, and with so many does not",
          "[borders]") {
  const CapturedLog quiet;
  int hung = 0;
  for (const Algorithm* algorithm : algorithms()) {
    const int least = algorithm->least_slots;
    const Plan plan = plan_of(*algorithm);
    INFO(plan.name());
    const PlanFile file(plan);
    for (const Result& result : run(algorithm->collective, file, 60'000, least))
      CHECK(result.result == khoroSuccess);
    if (least == 1) continue;
    const Verdict verdict = verify(plan, {.slots = least - 1});
    REQUIRE(verdict.found);
    REQUIRE(verdict.found->outcome.hangs);
    for (const Result& result : run(algorithm->collective, file, 300, least - 1)) {
      INFO(result.words);
      CHECK(result.result == khoroTimeout);
      CHECK(result.words.find(std::string(name(algorithm->collective))) != std::string::npos);
    }
    ++hung;
  }
  CHECK(hung == 14);
}

TEST_CASE("a mutant gives wrong values in the chunks that were foretold, and only there",
          "[borders]") {
  const Algorithm& ring = *find_algorithm(CollectiveKind::allgather, "ring");
  int shown = 0;
  for (const test::Mutant& mutant : test::mutants_of(plan_of(ring), ring.least_slots)) {
    const Verdict verdict = verify(mutant.plan, {.slots = 8});
    if (!verdict.found || verdict.found->fault != Fault::wrong_value) continue;
    INFO(mutant.description);
    std::vector<Outcome::Chunk> wrong;
    const auto results = run(CollectiveKind::allgather, PlanFile(mutant.plan), 60'000);
    for (int rank = 0; rank < ranks; ++rank) {
      CHECK(results[std::size_t(rank)].result == khoroSuccess);
      const Vector right = expected({CollectiveKind::allgather, ranks}, rank);
      for (int chunk = 0; chunk < ranks; ++chunk) {
        const auto first = std::ptrdiff_t(chunk * count);
        const Vector& out = results[std::size_t(rank)].out;
        if (!std::equal(out.begin() + first, out.begin() + first + std::ptrdiff_t(count),
                        right.begin() + first))
          wrong.push_back({rank, chunk});
      }
    }
    CHECK(wrong == verdict.found->outcome.wrong);
    ++shown;
  }
  CHECK(shown > 10);
}
#else
TEST_CASE("every plan runs from its text", "[borders]") {
  WARN("skipped: KHORO_TEST_PLAN_FILE needs a build with -Dtest_switches=true");
}
#endif
