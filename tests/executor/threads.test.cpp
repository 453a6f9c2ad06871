// SPDX-License-Identifier: Apache-2.0
#include <barrier>
#include <map>
#include <thread>

#include "support/arenas.h"
#include "support/catch.h"
#include "support/memory_job.h"
#include "transport/registry.h"

using namespace khoro;
using test::Arenas;
using test::Job;
using test::JobCall;
using test::Spaces;

namespace {

/// The ends that one rank opens in a transport.
class TransportEnds final : public Ends {
 public:
  TransportEnds(Transport& transport, ChannelShape shape) : transport_(transport), shape_(shape) {}
  Sender& sender(int peer, std::uint8_t index) override {
    auto& end = senders_[{peer, index}];
    if (!end) end = transport_.open_sender({peer, index}, shape_);
    return *end;
  }
  Receiver& receiver(int peer, std::uint8_t index) override {
    auto& end = receivers_[{peer, index}];
    if (!end) end = transport_.open_receiver({peer, index}, shape_);
    return *end;
  }

 private:
  Transport& transport_;
  ChannelShape shape_;
  std::map<std::pair<int, int>, std::unique_ptr<Sender>> senders_;
  std::map<std::pair<int, int>, std::unique_ptr<Receiver>> receivers_;
};

/// A plan's ranks over a transport, one thread each.
class ThreadedJob {
 public:
  ThreadedJob(const Plan& plan, const TransportRow& row, Spaces spaces, ChannelShape shape,
              const ExecutionOptions& options)
      : ranks_(plan.collective.ranks),
        shape_(shape),
        arenas_(ranks_, 8 << 20, spaces, row.uses_sockets ? Arenas::stripes : 0) {
    std::vector<Ends*> all;
    for (int rank = 0; rank < ranks_; ++rank) {
      transports_.push_back(row.make(arenas_.setup(rank)));
      ends_.push_back(std::make_unique<TransportEnds>(*transports_.back(), shape));
      all.push_back(ends_.back().get());
    }
    job_ = std::make_unique<Job>(plan, std::move(all), options);
    if (spaces != Spaces::sharing) return;
    std::vector<Arena*> shared;
    for (int rank = 0; rank < ranks_; ++rank) shared.push_back(arenas_.arena(rank));
    job_->share(std::move(shared));
  }

  bool run(const JobCall& call) {
    job_->start(call);
    std::vector<Progress> last(static_cast<std::size_t>(ranks_), Progress::waiting);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks_; ++rank)
      threads.emplace_back([this, rank, &last] {
        Progress& progress = last[static_cast<std::size_t>(rank)];
        while (progress != Progress::done && progress != Progress::failed) {
          progress = job_->execution(rank).advance();
          if (progress == Progress::waiting) std::this_thread::yield();
        }
      });
    for (std::thread& thread : threads) thread.join();
    for (Progress progress : last)
      if (progress != Progress::done) return false;
    return job_->right(call, shape_.slot_bytes);
  }

 private:
  int ranks_;
  ChannelShape shape_;
  Arenas arenas_;
  std::vector<std::unique_ptr<Transport>> transports_;
  std::vector<std::unique_ptr<TransportEnds>> ends_;
  std::unique_ptr<Job> job_;
};

}  // namespace

TEST_CASE("ranks on threads of their own give the same bits over every transport", "[executor]") {
  ExecutionOptions options;
  options.lending = LendingRule::always(64);
  for (const TransportRow& row : transports())
    for (Spaces spaces : {Spaces::one, Spaces::apart, Spaces::sharing}) {
      if (row.uses_sockets && spaces != Spaces::apart) continue;
      test::for_each_plan({2, 3, 5}, [&](const Algorithm& algorithm, const Plan& plan) {
        const ChannelShape shape{static_cast<std::uint32_t>(std::max(algorithm.least_slots, 2)),
                                 1024};
        ThreadedJob job(plan, row, spaces, shape, options);
        test::for_each_call(plan, {1, 700}, [&](const JobCall& call) { REQUIRE(job.run(call)); });
      });
    }
}
