// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace khoro {

/// The linear program behind channels: rows have a capacity, columns use some of rows, and the sum
/// of the amounts of all columns is to be as large as it can. Columns are added between solves,
/// each of which goes on where the last one ended.
///
/// Primal simplex with an explicit inverse of the basis. Ties in the ratio test are broken
/// lexicographically, so it ends, and always in the same way.
class Packing {
 public:
  /// Rows that a column uses, and how much of each by one unit of it.
  using Column = std::vector<std::pair<int, double>>;

  explicit Packing(std::vector<double> capacities);

  void add(Column column);
  void solve();
  std::size_t columns() const noexcept { return columns_.size(); }
  /// Of the columns, in the order in which they were added.
  std::vector<double> amounts() const;
  double value() const;
  /// What one more unit of each row is worth. A column whose rows cost less than 1 in all is worth
  /// adding.
  const std::vector<double>& prices() const noexcept { return prices_; }

 private:
  double& inverse(std::size_t row, std::size_t column) { return inverse_[row * rows_ + column]; }
  double inverse(std::size_t row, std::size_t column) const {
    return inverse_[row * rows_ + column];
  }
  bool enter();
  std::vector<double> direction(std::size_t variable) const;
  bool leaves_before(std::size_t one, std::size_t other, const std::vector<double>& slope) const;
  void pivot(std::size_t row, std::size_t variable, const std::vector<double>& slope);
  void find_prices();

  std::size_t rows_;
  std::vector<Column> columns_;
  std::vector<std::size_t> basis_;  // by row a variable: the row's slack, or rows_ + a column
  std::vector<double> filled_;      // by row the value of that variable
  std::vector<double> inverse_;
  std::vector<double> prices_;
};

}  // namespace khoro
