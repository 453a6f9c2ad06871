// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "device/arithmetic.h"

namespace khoro {

/// Conversions by the processor's own instructions for f16, which know subnormals, infinities and
/// NaNs. 8-bit floats are widened by way of f16, which holds each of them; to round to them that
/// way would round twice. The bits are those of widen() and round_to(), but for those of a NaN.
struct F16cConversions {
  template <class Memory>
  static constexpr bool widens = std::is_same_v<Memory, F16> || std::is_same_v<Memory, F8e4m3> ||
                                 std::is_same_v<Memory, F8e5m2>;
  template <class Memory>
  static constexpr bool rounds = std::is_same_v<Memory, F16>;

  template <class Memory>
  [[gnu::target("avx2,f16c")]] static void widen_all(float* values, const std::byte* data,
                                                     std::size_t count) noexcept {
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes)
      _mm256_storeu_ps(values + i, eight(Memory{}, data + i * sizeof(Memory)));
    for (; i < count; ++i) {
      Memory value;
      std::memcpy(&value, data + i * sizeof(Memory), sizeof(Memory));
      values[i] = widen(value);
    }
  }

  template <class Memory>
  [[gnu::target("avx2,f16c")]] static void round_all(std::byte* data, const float* values,
                                                     std::size_t count) noexcept {
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(data + i * sizeof(F16)),
                       _mm256_cvtps_ph(_mm256_loadu_ps(values + i), _MM_FROUND_TO_NEAREST_INT));
    for (; i < count; ++i) {
      const F16 value = round_to<F16>(values[i]);
      std::memcpy(data + i * sizeof(F16), &value, sizeof(F16));
    }
  }

 private:
  static constexpr std::size_t lanes = 8;

  [[gnu::always_inline, gnu::target("avx2,f16c")]] static inline __m256 eight(
      F16, const std::byte* data) noexcept {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(data)));
  }

  /// Each in the low half of 16 bits.
  [[gnu::always_inline, gnu::target("avx2,f16c")]] static inline __m128i bytes(
      const std::byte* data) noexcept {
    return _mm_cvtepu8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(data)));
  }

  /// The first half of an f16.
  [[gnu::always_inline, gnu::target("avx2,f16c")]] static inline __m256 eight(
      F8e5m2, const std::byte* data) noexcept {
    return _mm256_cvtph_ps(_mm_slli_epi16(bytes(data), 8));
  }

  /// An f16 but for the bias of the exponent, and for the code that is a NaN.
  [[gnu::always_inline, gnu::target("avx2,f16c")]] static inline __m256 eight(
      F8e4m3, const std::byte* data) noexcept {
    const __m128i codes = bytes(data);
    const __m128i magnitudes = _mm_and_si128(codes, _mm_set1_epi16(0x7f));
    const __m128i signs = _mm_slli_epi16(_mm_andnot_si128(_mm_set1_epi16(0x7f), codes), 8);
    const __m128i halves = _mm_or_si128(signs, _mm_slli_epi16(magnitudes, 7));
    const __m256 numbers = _mm256_mul_ps(_mm256_cvtph_ps(halves), _mm256_set1_ps(256));
    const __m128i nan = _mm_cmpeq_epi16(magnitudes, _mm_set1_epi16(0x7f));
    return _mm256_or_ps(numbers, _mm256_castsi256_ps(_mm256_cvtepi16_epi32(nan)));
  }
};

}  // namespace khoro
