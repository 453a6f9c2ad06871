// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cfenv>

namespace khoro {

#if defined(__x86_64__)
/// Rounding mode and treatment of subnormals belong to the caller; reductions use the default.
class DefaultControlWord {
 public:
  DefaultControlWord() noexcept : saved_(__builtin_ia32_stmxcsr()) {
    if (changed()) __builtin_ia32_ldmxcsr(standard);
  }
  ~DefaultControlWord() {
    if (changed()) __builtin_ia32_ldmxcsr(saved_);
  }
  DefaultControlWord(const DefaultControlWord&) = delete;
  DefaultControlWord& operator=(const DefaultControlWord&) = delete;

 private:
  static constexpr unsigned standard = 0x1f80;
  static constexpr unsigned flags = 0x3f;  // what has happened so far: nobody's setting
  bool changed() const noexcept { return (saved_ & ~flags) != standard; }
  unsigned saved_;
};
#else
class DefaultControlWord {
 public:
  DefaultControlWord() noexcept { std::fegetenv(&saved_), std::fesetenv(FE_DFL_ENV); }
  ~DefaultControlWord() { std::fesetenv(&saved_); }
  DefaultControlWord(const DefaultControlWord&) = delete;
  DefaultControlWord& operator=(const DefaultControlWord&) = delete;

 private:
  std::fenv_t saved_;
};
#endif

}  // namespace khoro
