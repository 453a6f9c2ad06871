// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <type_traits>

namespace khoro {

using Key = std::array<std::uint8_t, 32>;
using Digest = std::array<std::uint8_t, 32>;

/// HMAC-SHA256 of the parts, one after the other. Who needs to tell the parts apart gives them
/// fixed lengths.
Digest hmac(std::span<const std::uint8_t> key,
            std::initializer_list<std::span<const std::uint8_t>> parts) noexcept;

/// Takes the same time whatever the digests hold.
bool equal_in_constant_time(const Digest& a, const Digest& b) noexcept;

/// Overwrites a secret in a way that the compiler does not remove.
void wipe(std::span<std::uint8_t> secret) noexcept;

/// The bytes of a trivially copyable value, or of a text without its end.
template <class Value>
requires(std::is_trivially_copyable_v<Value> &&
         !std::is_convertible_v<const Value&, std::string_view>)
    std::span<const std::uint8_t> bytes_of(const Value& value)
noexcept { return {reinterpret_cast<const std::uint8_t*>(&value), sizeof value}; }
inline std::span<const std::uint8_t> bytes_of(std::string_view text) noexcept {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

}  // namespace khoro
