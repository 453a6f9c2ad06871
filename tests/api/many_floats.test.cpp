// SPDX-License-Identifier: Apache-2.0
// Millions of floats, on slots of any size.
#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "support/catch.h"
#include "support/child.h"
#include "support/large_memory.h"
#include "support/play_cases.h"

using namespace khoro;
using namespace khoro::test;

namespace {

/// An allreduce of floats, on threads so that all ranks share what is expected; every bit compared.
void play_large(int ranks, std::size_t count, const std::string& others,
                const Algorithm* forced = nullptr) {
  Case what;
  what.kind = CollectiveKind::allreduce;
  what.dtype = Dtype::f32;
  what.ranks = ranks;
  what.count = count;
  what.forced = forced;
  const std::string settings_text = settings_of(what, others);
  Settings settings;
  settings.choose(settings_text);
  PlanBook book(settings);
  const ElementPools pools;
  INFO(text(what) << ", " << settings_text);
  const std::string why = too_large(3 * static_cast<std::size_t>(ranks) * count * 4);
  if (!why.empty()) {
    WARN("skipped: " << text(what) << ": " << why);
    return;
  }
  std::mutex mutex;
  std::optional<Expectation> expected;
  std::vector<std::vector<float>> outputs(static_cast<std::size_t>(ranks));
  int ended = 0;
  CHECK(on_ranks(Living::threads, ranks, settings_text, [&](khoroComm_t comm, int rank) {
    {
      const std::lock_guard lock(mutex);
      if (!expected) expected.emplace(what, book, pools);
    }
    std::vector<float>& out = outputs[std::size_t(rank)];
    out.assign(count + 1, 77);
    succeed(make_call(what, {rank, expected->input(rank).data(), out.data(), comm}), text(what));
    expect(out.back() == 77, "the float behind the output was written");
    const std::lock_guard lock(mutex);
    if (++ended < ranks) return;
    std::vector<const std::byte*> all;
    for (std::vector<float>& each : outputs)
      all.push_back(reinterpret_cast<const std::byte*>(each.data()));
    expect(expected->all_right(all), text(what) + ": an output has other bits");
  }));
}

}  // namespace

TEST_CASE("millions of floats that no number of ranks divides are right", "[api]") {
  for (int ranks : {3, 8})
    for (std::size_t count : {10'556'587, 9'999'999, 12'345'678}) play_large(ranks, count, "");
  for (const Algorithm* way : ways_of(CollectiveKind::allreduce)) {
    if (way == nullptr) continue;
    play_large(3, 9'999'999, "", way);
    play_large(8, 10'556'587, "", way);
  }
}

TEST_CASE("slots of any legal size are right for millions of floats", "[api]") {
  for (const char* bytes : {"4096", "12288", "1003520", "16M"})
    play_large(2, 12'345'678, std::string("KHORO_SLOT_BYTES=") + bytes);
  for (const Algorithm* way : ways_of(CollectiveKind::allreduce))
    play_large(3, 1'234'567, "KHORO_SLOT_BYTES=12288", way);
}

TEST_CASE("a size of slots that is not legal is refused with what is", "[api]") {
  for (const char* bytes : {"1000000", "4097", "3", "0", "-1", "", "4096 bytes", "1e6", "32M"}) {
    Child child([bytes] {
      const std::string settings = std::string("KHORO_SLOT_BYTES=") + bytes;
      khoroConfig_t config = KHORO_CONFIG_INITIALIZER;
      config.settings = settings.c_str();
      khoroUniqueId id;
      khoroComm_t comm = nullptr;
      if (khoroGetUniqueId(&id) != khoroSuccess) return 1;
      if (khoroCommInitRankConfig(&comm, 1, id, 0, &config) != khoroInvalidArgument) return 2;
      const std::string words = khoroGetLastError(nullptr);
      const bool names_all = words.find("KHORO_SLOT_BYTES") != std::string::npos &&
                             words.find(std::string("'") + bytes + "'") != std::string::npos &&
                             words.find("multiple of 4K from 4K to 16M") != std::string::npos;
      return names_all ? 0 : 3;
    });
    INFO("'" << bytes << "'");
    CHECK(child.wait() == 0);
  }
}
