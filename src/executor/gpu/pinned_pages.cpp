// SPDX-License-Identifier: Apache-2.0
#include "executor/gpu/pinned_pages.h"

#include <sys/mman.h>

#include "base/error.h"
#include "base/system.h"
#include "device/arguments.h"

namespace khoro::gpu {

PinnedPages::PinnedPages(Driver& driver, int device, std::uint64_t bytes) {
  // Shared, so that a fork of the process does not give it other pages than those pinned.
  void* const pages =
      ::mmap(nullptr, to_pages(bytes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) throw_errno("pages that kernels see");
  here_ = {static_cast<std::byte*>(pages), to_pages(bytes)};
  try {
    pinned_ = driver.pin(here_);
    in_kernels_ = reinterpret_cast<std::byte*>(driver.in_kernels(device, pinned_->address()));
  } catch (...) {
    pinned_.reset();
    ::munmap(here_.data(), here_.size());
    throw;
  }
}

PinnedPages::~PinnedPages() {
  pinned_.reset();
  ::munmap(here_.data(), here_.size());
}

}  // namespace khoro::gpu
