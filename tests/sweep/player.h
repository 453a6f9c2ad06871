// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <khoro/khoro.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "support/case_memory.h"
#include "support/expectation.h"
#include "support/guarded_buffers.h"
#include "sweep/axes.h"
#include "sweep/tally.h"

namespace khoro::test {

/// The draws of a sweep that one communicator plays: those that agree with a point of
/// communicators_of().
using DrawsOf = std::function<std::vector<Draw>(const Point& communicator)>;

/// What the ranks of one process share while they play. Thread-safe.
class Table {
 public:
  /// The process holds `threads` ranks of the job, from `first_rank` on.
  Table(const Space& space, PlanBook& book, int first_rank, int threads);

  const Space& space() const { return space_; }
  PlanBook& book() { return book_; }
  Tally& tally() { return tally_; }  // of rank 0 alone

  /// What must come of draw `number`, which each rank of this process that plays it asks for once.
  std::shared_ptr<Expectation> expect(std::uint64_t number, const Case& what);
  /// Says that a rank got it wrong, and how to play it again.
  void wrong(int rank, const std::string& what, const Draw& draw, const Case& call);
  bool all_right() const { return wrong_ == 0; }

 private:
  struct Shared {
    std::shared_ptr<Expectation> expectation;
    int asked = 0;
  };
  /// Of a communicator of so many ranks.
  int ranks_here(int ranks) const;

  const Space& space_;
  PlanBook& book_;
  ElementPools pools_;
  Tally tally_;
  int first_rank_, threads_;
  std::mutex mutex_;
  std::map<std::uint64_t, Shared> shared_;
  std::uint64_t wrong_ = 0;
};

/// One rank of a job, which plays every draw that it has a part in. Throws when a call fails: the
/// job is over then.
class Player {
 public:
  Player(Table& table, DrawsOf draws, bool shows_progress)
      : table_(table), draws_(std::move(draws)), shows_progress_(shows_progress) {}

  /// Joins the job, plays, and leaves it.
  void play();

 private:
  void play_with(int ranks, khoroComm_t world);
  /// The draws have the numbers from `number` on, the same on all ranks.
  void play_all(const std::vector<Draw>& draws, khoroComm_t comm, std::uint64_t number);
  void play_one(const Draw& draw, khoroComm_t comm, CaseMemory& memory, std::uint64_t number);
  void show_progress(int ranks, const std::string& settings, std::size_t draws) const;

  Table& table_;
  DrawsOf draws_;
  bool shows_progress_;
  GuardedBuffers buffers_;
  khoroStream_t host_stream_ = nullptr;
  int rank_ = 0;
};

}  // namespace khoro::test
