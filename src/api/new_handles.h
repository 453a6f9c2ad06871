// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <exception>
#include <vector>

#include "api/handle_table.h"
#include "khoro/khoro.h"

namespace khoro {

/// Handles that nobody has seen. Their communicators are destroyed with it.
class NewHandles {
 public:
  NewHandles() = default;
  NewHandles(const NewHandles&) = delete;
  NewHandles& operator=(const NewHandles&) = delete;
  ~NewHandles() {
    for (const khoroComm_t handle : handles_) {
      try {
        if (handle) handles().remove(handle);
      } catch (const std::exception&) {
        // Nobody else has it, so all that it can lack is memory.
      }
    }
  }

  std::size_t size() const noexcept { return handles_.size(); }
  /// Keeps what `make` gives, which may be NULL.
  template <class MakeHandle>
  void add(MakeHandle make) {
    handles_.push_back(nullptr);
    try {
      handles_.back() = make();
    } catch (...) {
      handles_.pop_back();
      throw;
    }
  }
  /// Writes each where the caller wants it: `out(i)`.
  template <class Out>
  void give_out(Out out) noexcept {
    for (std::size_t i = 0; i < handles_.size(); ++i) *out(i) = handles_[i];
    handles_.clear();
  }

 private:
  std::vector<khoroComm_t> handles_;
};

}  // namespace khoro
