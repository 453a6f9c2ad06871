// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "plan/text.h"
#include "plan/verify.h"
#include "support/catch.h"

namespace khoro::test {

inline Plan plan_of(const std::string& text) {
  Parsed parsed = parse(text);
  for (const Diagnostic& diagnostic : parsed.diagnostics)
    FAIL(diagnostic.line << ": " << diagnostic.message);
  return *std::move(parsed.plan);
}

struct Expected {
  Fault fault;
  std::string place;
  std::string message;
};

inline Verdict::Found found(const Plan& plan, const VerifyOptions& options,
                            const Expected& expected) {
  const Verdict verdict = verify(plan, options);
  REQUIRE(verdict.found);
  CHECK(name(verdict.found->fault) == name(expected.fault));
  CHECK(verdict.found->diagnostic.place == expected.place);
  CHECK(verdict.found->diagnostic.message == expected.message);
  return *verdict.found;
}

inline Verdict::Found found(const std::string& text, const Expected& expected,
                            const VerifyOptions& options = {}) {
  return found(plan_of(text), options, expected);
}

inline void proved(const std::string& text, const VerifyOptions& options = {}) {
  const Verdict verdict = verify(plan_of(text), options);
  if (verdict.found)
    FAIL_CHECK(verdict.found->diagnostic.place << ": " << verdict.found->diagnostic.message);
}

inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

/// A plan that is right.
inline const std::string ring2 = R"(plan allreduce.ring ranks 2 chunks 2
rank 0
  lane 0
    read input[0] | send 1
    recv 1 | reduce input[1] | write output[1] | send 1
    recv 1 | write output[0]
rank 1
  lane 0
    read input[1] | send 0
    recv 0 | reduce input[0] | write output[0] | send 0
    recv 0 | write output[1]
)";

}  // namespace khoro::test
