// SPDX-License-Identifier: Apache-2.0
#include "ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <functional>

#include "threads.h"

namespace khoro::benchmark {
namespace {

struct Joined {
  khoroComm_t comm = nullptr;
  khoroResult_t result = khoroSuccess;
  std::string words;
};

/// Joins all ranks at once, each on a thread of its own but the first, which is on this one.
std::vector<Joined> join_in_threads(int ranks,
                                    const std::function<khoroResult_t(Joined&, int)>& call) {
  std::vector<Joined> joined(ranks);
  run_on_threads(joined.size(), [&](std::size_t k) {
    joined[k].result = call(joined[k], static_cast<int>(k));
    if (joined[k].result != khoroSuccess) joined[k].words = khoroGetLastError(nullptr);
  });
  return joined;
}

std::vector<khoroComm_t> all_of(const std::vector<Joined>& joined) {
  std::vector<khoroComm_t> comms;
  for (const Joined& one : joined) {
    if (one.result != khoroSuccess) {
      throw Failure(fmt::format("joining: {} ({})", khoroGetErrorString(one.result), one.words));
    }
    comms.push_back(one.comm);
  }
  return comms;
}

std::vector<khoroComm_t> join_in_parallel(int threads) {
  const auto world =
      join_in_threads(threads, [](Joined& one, int) { return khoroCommInitWorld(&one.comm); });
  const bool launched = std::any_of(world.begin(), world.end(), [](const Joined& one) {
    return one.result != khoroInvalidUsage;
  });
  if (launched) return all_of(world);
  khoroUniqueId id;
  check(khoroGetUniqueId(&id), "khoroGetUniqueId");
  return all_of(join_in_threads(threads, [&](Joined& one, int rank) {
    return khoroCommInitRank(&one.comm, threads, id, rank);
  }));
}

}  // namespace

void check(khoroResult_t result, std::string_view call, khoroComm_t comm) {
  if (result == khoroSuccess) return;
  throw Failure(
      fmt::format("{}: {} ({})", call, khoroGetErrorString(result), khoroGetLastError(comm)));
}

std::vector<khoroComm_t> join(const Options& options) {
  const int threads = options.threads.value_or(1);
  if (options.parallel_init) return join_in_parallel(threads);

  // The launcher knows how many ranks this process has: they join until none is left.
  std::deque<khoroComm_t> world;  // never moves what a group will write
  check(khoroGroupStart(), "khoroGroupStart");
  khoroResult_t result = khoroSuccess;
  while (result == khoroSuccess) {
    world.push_back(nullptr);
    result = khoroCommInitWorld(&world.back());
  }
  world.pop_back();
  const khoroResult_t end = khoroGroupEnd();
  if (result != khoroInvalidUsage) check(result, "khoroCommInitWorld");
  check(end, "khoroGroupEnd");
  if (world.empty()) {
    std::vector<khoroComm_t> comms(threads);
    check(khoroCommInitAllHost(comms.data(), threads), "khoroCommInitAllHost");
    return comms;
  }
  if (options.threads && static_cast<std::size_t>(threads) != world.size()) {
    throw Failure(
        fmt::format("-t {}: the launcher gave this process {} thread(s); ask it for others "
                    "(khoro run --threads)",
                    threads, world.size()));
  }
  return {world.begin(), world.end()};
}

}  // namespace khoro::benchmark
