// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "plan/proof/value.h"
#include "plan/verify.h"

namespace khoro::proof {

/// Writes down how values came to be, for a second run that explains a fault: fingerprints say
/// *that* an output is wrong, the tree behind its order says who is missing or doubled, exactly.
class Book {
 public:
  /// Watches one output chunk, and writes down values of these two input chunks only.
  Book(Outcome::Chunk watched, std::int32_t chunk, std::int32_t other)
      : watched_(watched), chunk_(chunk), other_(other) {}

  void leaf(const Value& value, int rank);
  void folded(const Value& result, std::uint64_t left, std::uint64_t right, const StepAt& at);
  void changed(const Value& result, std::uint64_t from, char mark);
  void wrote(int rank, int chunk, const StepAt& at);

  /// A chunk of a rank's input, and how often it is inside.
  struct Part {
    int rank = 0;
    std::int32_t chunk = 0;
    std::uint64_t times = 0;
  };
  std::vector<Part> parts(std::uint64_t order) const;
  /// The first step that folds two values which both hold a contribution of `rank`.
  std::optional<StepAt> doubled_at(std::uint64_t order, int rank) const;
  /// "((0+1)'+2)'": ranks, brackets for folds, ' for a rounding, / for the division, * for premul.
  std::string tree(std::uint64_t order) const;
  std::optional<StepAt> last_write() const { return last_write_; }

 private:
  struct Node {
    std::uint64_t left = 0;   // orders; of a leaf: nothing
    std::uint64_t right = 0;  // of a fold
    int rank = -1;            // of a leaf
    std::int32_t chunk = 0;
    char mark = 0;  // of a change
    StepAt at;
  };
  bool wanted(const Value& value) const { return value.chunk == chunk_ || value.chunk == other_; }
  void add(std::uint64_t order, Node node);
  std::vector<std::uint64_t> uses(std::uint64_t order) const;
  void print(std::uint64_t order, int depth, std::string& text) const;

  Outcome::Chunk watched_;
  std::int32_t chunk_;
  std::int32_t other_;
  std::unordered_map<std::uint64_t, std::size_t> places_;
  std::vector<Node> nodes_;  // a node comes after those it is made of
  std::optional<StepAt> last_write_;
};

}  // namespace khoro::proof
