// SPDX-License-Identifier: Apache-2.0
#include "plan/text.h"

#include <algorithm>
#include <filesystem>
#include <string>

#include "plan/image.h"
#include "support/catch.h"
#include "support/golden.h"

using namespace khoro;

namespace {

/// Every word of the grammar in one text, as print() writes it.
const char* const everything =
    "plan allreduce.mixed-2 ranks 2 chunks 4 weights 1 256 3 2 average rank-order premul\n"
    "rank 0\n"
    "  token up = 0\n"
    "  token down-1 = 3\n"
    "  lane 0\n"
    "    read input[0]* | send 1\n"
    "    recv 1 | reduce input[1:3]* | reduce recv 1.1 | reduce take 1 | scale | write output[1:3] "
    "|"
    " write scratch[0:2] | send 1 | send 1.3 | put 1.2 | signal up\n"
    "    offer output[3] to 1\n"
    "    await up await down-1 offer scratch[2] to 1.7\n"
    "  lane 1\n"
    "    await up take 1 | write output[3]\n"
    "    read input[0:0] | send 1.0\n"
    "rank 1\n"
    "  lane 0\n";

std::vector<std::string> messages(const std::vector<Diagnostic>& diagnostics) {
  std::vector<std::string> found;
  for (const Diagnostic& diagnostic : diagnostics)
    found.push_back(std::to_string(diagnostic.line) + ": " + diagnostic.message);
  return found;
}

/// What the file's comments `# error: ...` say must be found, as messages().
std::vector<std::string> expected_messages(const std::string& text) {
  std::vector<std::string> expected;
  std::istringstream lines(text);
  int number = 0;
  const std::string mark = "# error: ";
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::size_t place = line.find(mark);
    if (place != std::string::npos)
      expected.push_back(std::to_string(number) + ": " + line.substr(place + mark.size()));
  }
  return expected;
}

}  // namespace

TEST_CASE("a text with every word of the grammar reads and prints equal", "[plan]") {
  const Parsed parsed = parse(everything);
  CHECK(messages(parsed.diagnostics).empty());
  REQUIRE(parsed.plan.has_value());
  CHECK(print(*parsed.plan) == everything);
  CHECK(parsed.plan->widest_message == 2);
  const Image image = flatten(*parsed.plan, 0);
  CHECK(image.token_counts == std::vector<int>{0, 3});
  CHECK(image.scratch_chunks == 3);
}

TEST_CASE("blanks, comments, empty lines and line ends of DOS do not matter", "[plan]") {
  const Parsed parsed = parse(
      "# a plan\r\n\r\nplan   broadcast . chain ranks 2 chunks 1\troot 1   # by hand\r\n"
      "rank 0\r\nlane 0\r\n recv 1|write output [ 0 : 1 ]\n\nrank 1\n\tlane 0\n"
      "read input[0] | write output[0] | send 0.0 # to the other");
  CHECK(messages(parsed.diagnostics).empty());
  REQUIRE(parsed.plan.has_value());
  CHECK(print(*parsed.plan) ==
        "plan broadcast.chain ranks 2 chunks 1 root 1\n"
        "rank 0\n  lane 0\n    recv 1 | write output[0]\n"
        "rank 1\n  lane 0\n    read input[0] | write output[0] | send 0\n");
}

TEST_CASE("one rank of a plan prints under the same head", "[plan]") {
  const Parsed parsed = parse(everything);
  REQUIRE(parsed.plan.has_value());
  CHECK(print(*parsed.plan, 1) ==
        "plan allreduce.mixed-2 ranks 2 chunks 4 weights 1 256 3 2 average rank-order premul\nrank "
        "1\n"
        "  lane 0\n");
}

TEST_CASE("lanes drawn from a plan that was read outlive it", "[plan]") {
  Program program;
  {
    Parsed parsed = parse(everything);
    program = parsed.plan->program(0);
  }
  int steps = 0;
  while (const Step* step = program.lanes[1].next()) steps += step->stages().empty() ? 0 : 1;
  CHECK(steps == 2);
}

TEST_CASE("every fault of a text is named beside its line", "[plan]") {
  const auto folder = test::golden_folder() / "invalid";
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".plan") continue;
    INFO(entry.path().string());
    const std::string text = test::read_file(entry.path());
    const Parsed parsed = parse(text);
    CHECK_FALSE(parsed.plan.has_value());
    CHECK(messages(parsed.diagnostics) == expected_messages(text));
    CHECK_FALSE(expected_messages(text).empty());
    ++files;
  }
  CHECK(files >= 5);
}

TEST_CASE("a text cut at any byte is a plan or has a fault with a line", "[plan]") {
  const std::string text = everything;
  for (std::size_t length = 0; length < text.size(); ++length) {
    const Parsed parsed = parse(text.substr(0, length));
    INFO(text.substr(0, length));
    if (parsed.plan) {
      // Only what is missing from a step that ended early can go unseen.
      CHECK(print(*parsed.plan).size() <= length + 1);
    } else {
      REQUIRE_FALSE(parsed.diagnostics.empty());
      CHECK(parsed.diagnostics.front().line >= 1);
    }
  }
}

TEST_CASE("a text with any byte changed is a plan or has a fault with a line", "[plan]") {
  const std::string text = everything;
  for (std::size_t place = 0; place < text.size(); ++place)
    for (char byte : {'\0', '\n', ' ', '9', 'z', '|', '[', '\xff'}) {
      std::string changed = text;
      changed[place] = byte;
      const Parsed parsed = parse(changed);
      if (parsed.plan) {
        const std::string printed = print(*parsed.plan);
        const Parsed again = parse(printed);
        INFO(printed);
        REQUIRE(again.plan.has_value());
        CHECK(print(*again.plan) == printed);
      } else {
        REQUIRE_FALSE(parsed.diagnostics.empty());
        CHECK(parsed.diagnostics.front().line >= 1);
      }
    }
}

TEST_CASE("sizes are capped before anything is allocated", "[plan]") {
  const auto first = [](const std::string& text) {
    const Parsed parsed = parse(text);
    REQUIRE_FALSE(parsed.diagnostics.empty());
    CHECK(parsed.diagnostics.size() <= 16);
    return messages(parsed.diagnostics).front();
  };
  CHECK(first("") == "1: no plan: expected \"plan COLLECTIVE.ALGORITHM ranks N chunks N\"");
  CHECK(first(std::string((16 << 20) + 1, ' ')) ==
        "1: 16777217 bytes: a plan has at most 16777216");
  CHECK(first("plan allreduce.x ranks 70000 chunks 1") == "1: ranks 70000: must be 1..65536");
  CHECK(first("plan allreduce.x ranks 60000 chunks 1000000") ==
        "1: 60000000000 chunks over all ranks: at most 16777216");
  CHECK(first("plan allreduce.x ranks 99999999999999999999 chunks 1") ==
        "1: ranks 99999999999999999999: must be 1..65536");
  std::string scratch = "plan allreduce.x ranks 20 chunks 1\n";
  for (int rank = 0; rank < 20; ++rank)
    scratch +=
        "rank " + std::to_string(rank) + "\nlane 0\nread input[0] | write scratch[1048575]\n";
  CHECK(first(scratch) == "49: 16777236 chunks over all ranks: at most 16777216");
  CHECK(first(std::string(100000, '\n') + "rank") == "100001: expected \"plan\", found \"rank\"");
  std::string lanes = "plan barrier.x ranks 1 chunks 0\nrank 0\n";
  for (int lane = 0; lane < 254; ++lane) lanes += "lane " + std::to_string(lane) + "\n";
  CHECK(first(lanes) == "256: lane 253: must be 0..252");
  CHECK(first("plan barrier.x ranks 1 chunks 0\n" + std::string(50, 'x')) ==
        "2: expected \"rank 0\", found \"" + std::string(40, 'x') + "...\"");
}
