// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace khoro {

/// Spreads the bits of `x` over the whole word (the finaliser of splitmix64). Not cryptographic.
constexpr std::uint64_t mix(std::uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// Chains `value` onto `hash`; order matters.
constexpr std::uint64_t combine(std::uint64_t hash, std::uint64_t value) noexcept {
  return mix(hash ^ mix(value));
}

constexpr std::uint64_t hash_text(std::string_view text) noexcept {
  std::uint64_t hash = text.size();
  for (char c : text) hash = combine(hash, static_cast<unsigned char>(c));
  return hash;
}

}  // namespace khoro
