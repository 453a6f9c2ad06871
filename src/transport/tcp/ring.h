// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

namespace khoro::tcp {

/// A queue whose memory is reserved beforehand, so that it never allocates in use.
template <class Item>
class Ring {
 public:
  /// Room for `more` items beside those it was reserved for before. Throws bad_alloc.
  void reserve(std::size_t more) {
    auto items = std::make_unique<Item[]>(capacity_ + more);
    for (std::size_t i = 0; i < size_; ++i) items[i] = (*this)[i];
    items_ = std::move(items);
    capacity_ += more;
    first_ = 0;
  }

  bool empty() const noexcept { return size_ == 0; }
  std::size_t size() const noexcept { return size_; }
  Item& operator[](std::size_t i) noexcept { return items_[(first_ + i) % capacity_]; }
  Item& front() noexcept { return (*this)[0]; }

  /// Null if there is no room.
  [[nodiscard]] Item* push() noexcept {
    if (size_ == capacity_) return nullptr;
    return &(*this)[size_++];
  }
  void pop() noexcept {
    first_ = (first_ + 1) % capacity_;
    --size_;
  }
  void clear() noexcept { size_ = 0; }

 private:
  std::unique_ptr<Item[]> items_;
  std::size_t capacity_ = 0;
  std::size_t first_ = 0;
  std::size_t size_ = 0;
};

}  // namespace khoro::tcp
