// SPDX-License-Identifier: Apache-2.0
#pragma once

// Catch2 under the name it has in this release: 2.13 (one header) or 3.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif
