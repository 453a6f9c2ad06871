// SPDX-License-Identifier: Apache-2.0
#include "plan/proof/book.h"

#include <limits>
#include <map>

namespace khoro::proof {
namespace {

constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
constexpr std::size_t longest_tree = 400;
constexpr int deepest_tree = 200;

/// Foreign plans may double a value again and again.
std::uint64_t saturated_sum(std::uint64_t a, std::uint64_t b) {
  return a > most - b ? most : a + b;
}

}  // namespace

void Book::add(std::uint64_t order, Node node) {
  if (places_.try_emplace(order, nodes_.size()).second) nodes_.push_back(node);
}

void Book::leaf(const Value& value, int rank) {
  if (wanted(value)) add(value.order, {0, 0, rank, value.chunk, 0, {}});
}

void Book::folded(const Value& result, std::uint64_t left, std::uint64_t right, const StepAt& at) {
  if (wanted(result)) add(result.order, {left, right, -1, 0, 0, at});
}

void Book::changed(const Value& result, std::uint64_t from, char mark) {
  if (wanted(result)) add(result.order, {from, 0, -1, 0, mark, {}});
}

void Book::wrote(int rank, int chunk, const StepAt& at) {
  if (Outcome::Chunk{rank, chunk} == watched_) last_write_ = at;
}

std::vector<std::uint64_t> Book::uses(std::uint64_t order) const {
  std::vector<std::uint64_t> uses(nodes_.size());
  const auto root = places_.find(order);
  if (root == places_.end()) return uses;
  uses[root->second] = 1;
  for (std::size_t i = nodes_.size(); i-- > 0;) {
    if (uses[i] == 0 || nodes_[i].rank >= 0) continue;
    const auto pass_on = [&](std::uint64_t part) {
      const auto place = places_.find(part);
      if (place != places_.end()) uses[place->second] = saturated_sum(uses[place->second], uses[i]);
    };
    pass_on(nodes_[i].left);
    if (nodes_[i].mark == 0) pass_on(nodes_[i].right);
  }
  return uses;
}

std::vector<Book::Part> Book::parts(std::uint64_t order) const {
  const std::vector<std::uint64_t> uses = this->uses(order);
  std::map<std::pair<int, std::int32_t>, std::uint64_t> counts;
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (nodes_[i].rank >= 0 && uses[i] > 0) counts[{nodes_[i].rank, nodes_[i].chunk}] = uses[i];
  std::vector<Part> parts;
  for (const auto& [whose, times] : counts) parts.push_back({whose.first, whose.second, times});
  return parts;
}

std::optional<StepAt> Book::doubled_at(std::uint64_t order, int rank) const {
  const std::vector<std::uint64_t> uses = this->uses(order);
  std::vector<bool> holds(nodes_.size());
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    const auto part_holds = [&](std::uint64_t part) {
      const auto place = places_.find(part);
      return place != places_.end() && holds[place->second];
    };
    const bool left = node.rank < 0 && part_holds(node.left);
    const bool right = node.rank < 0 && node.mark == 0 && part_holds(node.right);
    if (left && right && uses[i] > 0) return node.at;
    holds[i] = node.rank == rank || left || right;
  }
  return std::nullopt;
}

void Book::print(std::uint64_t order, int depth, std::string& text) const {
  const auto place = places_.find(order);
  if (place == places_.end() || depth > deepest_tree || text.size() > longest_tree) {
    text += "...";
    return;
  }
  const Node& node = nodes_[place->second];
  if (node.rank >= 0) {
    text += std::to_string(node.rank);
  } else if (node.mark != 0) {
    print(node.left, depth + 1, text);
    text += node.mark;
  } else {
    text += '(';
    print(node.left, depth + 1, text);
    text += '+';
    print(node.right, depth + 1, text);
    text += ')';
  }
}

std::string Book::tree(std::uint64_t order) const {
  std::string text;
  print(order, 0, text);
  return text;
}

}  // namespace khoro::proof
