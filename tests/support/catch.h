// SPDX-License-Identifier: Apache-2.0
#pragma once

// Catch2 under the names that tests use, in both releases: 2.13 (one header) and 3.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
namespace Catch {
inline auto Contains(const std::string& part) { return Matchers::ContainsSubstring(part); }
}  // namespace Catch
#else
#include <catch2/catch.hpp>
#endif
