// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "plan/program.h"

namespace khoro {

/// One step as a line without indentation; `lane` is what channel indices default to.
std::string print(const Step& step, int lane, const std::vector<Token>& tokens);

/// The canonical text of a plan, or of one rank of it: the head and the ranks. Equal plans print
/// equal.
std::string print(const Plan& plan, std::optional<int> rank = std::nullopt);
std::string print_head(const Plan& plan);
std::string print_rank(const Plan& plan, int rank);

/// Bytes of text that parse() takes.
inline constexpr std::size_t most_plan_bytes = std::size_t{16} << 20;

struct Parsed {
  std::optional<Plan> plan;  // present if there are no diagnostics
  std::vector<Diagnostic> diagnostics;
};

/// Reads what print() wrote for all ranks. Sizes are capped before anything is allocated: 16 MiB of
/// text, 65,536 ranks, 253 lanes a rank.
Parsed parse(std::string_view text);

}  // namespace khoro
