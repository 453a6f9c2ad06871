// SPDX-License-Identifier: Apache-2.0
#include "topology/search/parts.h"

#include <algorithm>
#include <cstdint>
#include <map>

#include "topology/index.h"

namespace khoro {
namespace {

/// All that matters of a part, but for which one it is.
std::vector<std::int64_t> description_of(const Graph& whole, const GraphPart& part) {
  std::vector<std::int64_t> numbers{part.graph.gpus, part.graph.vertices()};
  const auto add = [&](int edge) {
    const Graph::Edge& here = whole.edge(edge);
    numbers.insert(numbers.end(),
                   {here.capacity, here.count, static_cast<std::int64_t>(here.links.size())});
  };
  for (std::size_t i = 0; i < part.edges.size(); ++i) {
    numbers.insert(numbers.end(), {part.graph.edges[i].from, part.graph.edges[i].to});
    add(part.edges[i]);
  }
  for (const Door& door : part.doors) {
    numbers.insert(numbers.end(), {-1, door.network, door.vertex});
    add(door.in);
    add(door.out);
  }
  return numbers;
}

class Division {
 public:
  explicit Division(const Graph& whole)
      : whole_(whole), number_(whole.sites.size()), parts_(at(whole.parts())) {}

  std::vector<GraphPart> divide() {
    add_vertices();
    for (int edge = 0; edge < static_cast<int>(whole_.edges.size()); ++edge)
      if (!add_edge(edge)) return {};
    if (!match_doors()) return {};
    std::map<std::vector<std::int64_t>, int> kinds;
    for (GraphPart& part : parts_) {
      const int next = static_cast<int>(kinds.size());
      part.kind = kinds.try_emplace(description_of(whole_, part), next).first->second;
    }
    return std::move(parts_);
  }

 private:
  void add_vertices() {
    for (int i = 0; i < whole_.vertices(); ++i) {
      if (whole_.part[at(i)] < 0) continue;
      GraphPart& part = parts_[at(whole_.part[at(i)])];
      number_[at(i)] = part.graph.vertices();
      part.graph.gpus += i < whole_.gpus;
      part.graph.sites.push_back(number_[at(i)]);
      part.graph.leaving.emplace_back();
      part.graph.part.push_back(0);
      part.vertices.push_back(i);
    }
  }

  bool add_edge(int index) {
    const Graph::Edge& edge = whole_.edge(index);
    const int from = whole_.part[at(edge.from)], to = whole_.part[at(edge.to)];
    if (from >= 0 && to >= 0 && from != to) return false;
    if (from < 0 && to < 0) return true;  // of no use
    if (from < 0 || to < 0) {
      const int inside = from < 0 ? edge.to : edge.from, network = from < 0 ? edge.from : edge.to;
      (from < 0 ? in_ : out_)[{inside, network}].push_back(index);
      return true;
    }
    GraphPart& part = parts_[at(from)];
    const int number = static_cast<int>(part.edges.size());
    part.graph.edges.push_back({number_[at(edge.from)],
                                number_[at(edge.to)],
                                edge.capacity,
                                {number},
                                number,
                                edge.count});
    part.graph.leaving[at(number_[at(edge.from)])].push_back(number);
    part.edges.push_back(index);
    return true;
  }

  bool match_doors() {
    for (const auto& [ends, edges] : in_) {
      const auto out = out_.find(ends);
      if (out == out_.end() || out->second.size() != edges.size()) return false;
      const auto [inside, network] = ends;
      for (std::size_t i = 0; i < edges.size(); ++i)
        parts_[at(whole_.part[at(inside)])].doors.push_back(
            {network, number_[at(inside)], edges[i], out->second[i]});
    }
    for (GraphPart& part : parts_)
      std::stable_sort(part.doors.begin(), part.doors.end(),
                       [](const Door& a, const Door& b) { return a.network < b.network; });
    return in_.size() == out_.size();
  }

  using Ends = std::pair<int, int>;  // inside, network

  const Graph& whole_;
  std::vector<int> number_;  // in its part, by vertex
  std::vector<GraphPart> parts_;
  std::map<Ends, std::vector<int>> in_, out_;
};

}  // namespace

std::vector<GraphPart> parts_of(const Graph& graph) { return Division(graph).divide(); }

}  // namespace khoro
