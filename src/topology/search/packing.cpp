// SPDX-License-Identifier: Apache-2.0
#include "topology/search/packing.h"

#include <numeric>

namespace khoro {
namespace {

constexpr double nothing = 1e-10;

}  // namespace

Packing::Packing(std::vector<double> capacities)
    : rows_(capacities.size()),
      basis_(rows_),
      filled_(std::move(capacities)),
      inverse_(rows_ * rows_),
      prices_(rows_) {
  std::iota(basis_.begin(), basis_.end(), std::size_t{0});
  for (std::size_t row = 0; row < rows_; ++row) inverse(row, row) = 1;
}

void Packing::add(Column column) { columns_.push_back(std::move(column)); }

void Packing::find_prices() {
  prices_.assign(rows_, 0);
  for (std::size_t row = 0; row < rows_; ++row)
    if (basis_[row] >= rows_)
      for (std::size_t i = 0; i < rows_; ++i) prices_[i] += inverse(row, i);
}

std::vector<double> Packing::direction(std::size_t variable) const {
  std::vector<double> slope(rows_);
  if (variable < rows_) {
    for (std::size_t row = 0; row < rows_; ++row) slope[row] = inverse(row, variable);
    return slope;
  }
  for (const auto& [used, load] : columns_[variable - rows_])
    for (std::size_t row = 0; row < rows_; ++row)
      slope[row] += load * inverse(row, static_cast<std::size_t>(used));
  return slope;
}

/// Whether row `one` runs out before row `other`; of rows that run out at once, the one whose row
/// of the inverse is lexicographically less in proportion.
bool Packing::leaves_before(std::size_t one, std::size_t other,
                            const std::vector<double>& slope) const {
  const auto compare = [&](double a, double b) {
    const double difference = a * slope[other] - b * slope[one];
    return difference < -1e-12 ? -1 : difference > 1e-12 ? 1 : 0;
  };
  if (const int order = compare(filled_[one], filled_[other])) return order < 0;
  for (std::size_t i = 0; i < rows_; ++i)
    if (const int order = compare(inverse(one, i), inverse(other, i))) return order < 0;
  return false;
}

void Packing::pivot(std::size_t row, std::size_t variable, const std::vector<double>& slope) {
  const double scale = 1 / slope[row];
  filled_[row] *= scale;
  for (std::size_t i = 0; i < rows_; ++i) inverse(row, i) *= scale;
  for (std::size_t other = 0; other < rows_; ++other) {
    if (other == row || slope[other] == 0) continue;
    filled_[other] -= slope[other] * filled_[row];
    if (filled_[other] < 0) filled_[other] = 0;  // by rounding alone
    for (std::size_t i = 0; i < rows_; ++i)
      if (inverse(row, i) != 0) inverse(other, i) -= slope[other] * inverse(row, i);
  }
  basis_[row] = variable;
}

/// One step of the simplex method; false at the optimum.
bool Packing::enter() {
  find_prices();
  double best = 1e-9;
  std::size_t variable = rows_ + columns_.size();
  for (std::size_t row = 0; row < rows_; ++row)
    if (-prices_[row] > best) best = -prices_[variable = row];
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    double gain = 1;
    for (const auto& [row, load] : columns_[i])
      gain -= load * prices_[static_cast<std::size_t>(row)];
    if (gain > best) {
      best = gain;
      variable = rows_ + i;
    }
  }
  if (variable == rows_ + columns_.size()) return false;
  const std::vector<double> slope = direction(variable);
  std::size_t leaving = rows_;
  for (std::size_t row = 0; row < rows_; ++row)
    if (slope[row] > nothing && (leaving == rows_ || leaves_before(row, leaving, slope)))
      leaving = row;
  if (leaving == rows_) return false;  // a column that uses nothing
  pivot(leaving, variable, slope);
  return true;
}

void Packing::solve() {
  // Many times what it takes: were rounding to lead it astray, it would still end.
  const std::size_t most = 50 * (rows_ + columns_.size()) + 100;
  for (std::size_t step = 0; step < most && enter(); ++step) continue;
  find_prices();
}

std::vector<double> Packing::amounts() const {
  std::vector<double> amounts(columns_.size());
  for (std::size_t row = 0; row < rows_; ++row)
    if (basis_[row] >= rows_) amounts[basis_[row] - rows_] = filled_[row];
  return amounts;
}

double Packing::value() const {
  const std::vector<double> all = amounts();
  return std::accumulate(all.begin(), all.end(), 0.0);
}

}  // namespace khoro
