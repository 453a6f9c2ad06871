// SPDX-License-Identifier: Apache-2.0
// What verify() foretells the executor shows.
#include <cstdio>

#include "borders/mutation_report.h"
#include "support/catch.h"
#include "support/golden.h"

using namespace khoro;
using test::MutationReport;

TEST_CASE("a mutant that is rejected does in real data what was foretold", "[borders]") {
  const MutationReport report = test::report_mutants(2, 6);
  for (const std::string& difference : report.differences()) {
    INFO(difference);
    CHECK(false);
  }
  CHECK(report.mutants() > 5000);
  INFO(report.text());
  test::check_golden(test::golden_folder() / "equivalent_mutants.txt", report.equivalent_text());
  CHECK(report.equivalent().size() * 10 < std::size_t(report.mutants()));
}

// `tests/test_borders report` prints the tables of docs/design/proof.md.
TEST_CASE("report", "[.report]") {
  const MutationReport report = test::report_mutants(2, 6);
  std::puts(report.text().c_str());
  for (const std::string& difference : report.differences()) std::puts(difference.c_str());
  std::puts(("equivalent:\n" + report.equivalent_text()).c_str());
  CHECK(report.differences().empty());
}
