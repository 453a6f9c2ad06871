// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

using namespace khoro::benchmark;

namespace {

int left(int rank, int ranks) { return (rank + ranks - 1) % ranks; }
int right(int rank, int ranks) { return (rank + 1) % ranks; }

khoroResult_t send_and_receive(const Call& call) {
  khoroResult_t result = khoroGroupStart();
  if (result != khoroSuccess) return result;
  const int to = right(call.rank, call.ranks);
  const int from = left(call.rank, call.ranks);
  result = khoroSend(call.send, call.count, call.type, to, call.comm, nullptr);
  if (result == khoroSuccess)
    result = khoroRecv(call.recv, call.count, call.type, from, call.comm, nullptr);
  const khoroResult_t end = khoroGroupEnd();
  return result == khoroSuccess ? end : result;
}

constexpr Collective sendrecv{
    .program = "sendrecv_perf",
    .reduces = false,
    // Sending what is being received is a race.
    .in_place = false,
    .extent =
        [](std::size_t n, int) {
          return Extent{n, n, n, 0};
        },
    .expect =
        [](const Extent& extent, int rank, int ranks) {
          return std::vector<Origin>{{left(rank, ranks), 0, 0, extent.recv}};
        },
    .bus_factor = [](int) { return 1.0; },
    .run = send_and_receive,
};

}  // namespace

int main(int argc, char** argv, char** environment) {
  return run(sendrecv, argc, argv, environment);
}
