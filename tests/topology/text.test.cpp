// SPDX-License-Identifier: Apache-2.0
#include "topology/formats/text.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <random>
#include <string>

#include "support/catch.h"
#include "support/seeds.h"
#include "topology/formats/text_words.h"

using namespace khoro;

namespace {

/// Every word of the form in one text, as print() writes it.
const char* const everything =
    "topology\n"
    "cpu cpu0 machine 0 arch=x86_64 numaid=-1 vendor=GenuineIntel\n"
    "bridge bridge0 machine 0 busid=0000:03:00.0 link_speed=\"8 GT/s\"\n"
    "gpu gpu0 machine 0\n"
    "gpu \"gpu \\\"one\\\"\\\\\\x0a\" machine -7 \"\"=\"\"\n"
    "nic nic0 machine 0\n"
    "port port0 machine 0 name=mlx5_0\n"
    "fabric fabric0 machine 0\n"
    "network network machine 2147483647\n"
    "link pci gpu0 -- bridge0 12 GB/s 0.25 us\n"
    "link nvlink gpu0 -- fabric0 x18 370.8 GB/s\n"
    "link xgmi gpu0 -> fabric0 1e-10 GB/s\n"
    "link c2c gpu0 -- cpu0 x5 223.56 GB/s 1.5 us\n"
    "link socket cpu0 -- cpu0\n"
    "link inside nic0 -- cpu0 5000 GB/s\n"
    "link port nic0 -- port0 3 us\n"
    "link network port0 -> network 5e20 GB/s\n"
    "rank 0 gpu0\n"
    "rank 1 gpu0\n";

struct Found {
  int line;
  int column;
  std::string message;
};

Found first_fault(const std::string& text) {
  const Reading reading = parse_topology(text);
  CHECK(!reading.topology);
  REQUIRE(!reading.diagnostics.empty());
  const Diagnostic& first = reading.diagnostics.front();
  return {first.line, first.column, first.message};
}

void faulty(const std::string& last_line, int column, const std::string& message) {
  const Found found = first_fault("topology\ngpu a machine 0\ngpu b machine 0\n" + last_line);
  INFO(last_line);
  CHECK(found.line == 4);
  CHECK(found.column == column);
  CHECK(found.message == message);
}

std::string random_word(std::mt19937& random) {
  std::string word;
  for (std::size_t length = random() % 9; length > 0; --length)
    word += static_cast<char>(random() % 3 == 0 ? random() % 256 : 'a' + random() % 26);
  return word;
}

double random_amount(std::mt19937_64& random) {
  double value = 0;
  do {
    value = std::bit_cast<double>(random() & ~(std::uint64_t{1} << 63));
  } while (!std::isfinite(value));
  // Some of the numbers that people write.
  if (random() % 2 == 0) value = static_cast<double>(random() % 100000) * 1e6;
  return random() % 8 == 0 ? 0 : value;
}

}  // namespace

TEST_CASE("a text with every word of the form reads and prints equal", "[topology]") {
  const Reading reading = parse_topology(everything);
  for (const Diagnostic& diagnostic : reading.diagnostics) FAIL(diagnostic.message);
  REQUIRE(reading.topology);
  CHECK(print(*reading.topology) == everything);
  const Topology& topology = *reading.topology;
  CHECK(topology.sites.size() == 8);
  CHECK(topology.sites[3].name == "gpu \"one\"\\\n");
  CHECK(topology.sites[3].machine == -7);
  CHECK(topology.sites[3].facts == Facts{{"", ""}});
  CHECK(topology.links.size() == 14);
  CHECK(topology.links[2].count == 18);
  CHECK(topology.links[2].bytes_per_second == 370.8e9);
  CHECK(topology.links[0].latency_seconds == 0.25e-6);
  CHECK(topology.links[4].bytes_per_second == 0.1);
  CHECK(topology.place == std::vector<int>{2, 2});
}

TEST_CASE("blanks, comments and empty lines of a topology do not count", "[topology]") {
  const Reading plain =
      parse_topology("topology\ngpu a machine 0 x=1\nlink pci a -> a x2 1 GB/s\n");
  const Reading spaced = parse_topology(
      "# a machine\n\n  topology # begins\r\n\tgpu  a machine 0 x = \"1\" # one\n \n"
      "link  pci  a -> a  x2 1.000 GB/s");
  REQUIRE(plain.topology);
  CHECK(plain.topology == spaced.topology);
}

TEST_CASE("faults of a topology's text are named where they stand", "[topology]") {
  faulty("gpu", 4, "expected the site's name, found the end of the line");
  faulty("gpu a machine 0", 5, "a second site of the name a");
  faulty("gpu c", 6, "expected \"machine\", found the end of the line");
  faulty("gpu c machine x", 15, "expected a machine from -2147483648 to 2147483647, found \"x\"");
  faulty("gpu c machine 0 x", 18, "expected \"=\", found the end of the line");
  faulty("gpu c machine 0 x=1 x=2", 21, "a second x");
  faulty("gpu c machine 0 x=", 19, "expected a value; nothing is \"\", found the end of the line");
  faulty("gpu \"c", 5, "the line ends inside the quotes");
  faulty("gpu \"c\\q\"", 8, "after \\ comes \", \\ or x and two digits");
  faulty("tpu c", 1, "expected a kind of site, \"link\" or \"rank\", found \"tpu\"");
  faulty("link ether a -- b", 6, "expected a kind of link, found \"ether\"");
  faulty("link pci a -- c", 15, "no site c in the lines above");
  faulty("link pci a b", 12, "expected \"->\", found \"b\"");
  faulty("link pci a -- b x", 18,
         "expected a count from 0 to 2147483647, found the end of the line");
  faulty("link pci a -- b 3", 18, "expected \"us\", found the end of the line");
  faulty("link pci a -- b -3 GB/s", 17, "expected a rate in GB/s or a latency in us, found \"-3\"");
  faulty("link pci a -- b 1e999 GB/s", 17,
         "expected a rate in GB/s or a latency in us, found \"1e999\"");
  faulty("link pci a -- b nan GB/s", 17,
         "expected a rate in GB/s or a latency in us, found \"nan\"");
  faulty("link pci a -- b 1 GB/s 2 GB/s", 24, "a second rate");
  faulty("link pci a -- b 1 us 2 us", 22, "a second latency");
  faulty("rank 1 a", 6, "rank 1 where rank 0 is due");
  faulty("rank 0 a b", 10, "expected the end of the line, found \"b\"");
}

TEST_CASE("what is no topology's text is told from one with faults", "[topology]") {
  CHECK(first_fault("").message == "no topology: expected \"topology\" in the first line");
  CHECK(first_fault("# nothing\n").message ==
        "no topology: expected \"topology\" in the first line");
  CHECK(first_fault("plan allreduce.ring\n").message == "expected \"topology\", found \"plan\"");
  CHECK(parse_topology("plan x\ny\nz\n").diagnostics.size() == 1);
  CHECK(parse_topology("topology\nx\ny\nz\n").diagnostics.size() == 3);
  CHECK(parse_topology("topology\n" + std::string(9999, '\n') + "x\n").diagnostics[0].line ==
        10001);
}

TEST_CASE("amounts are printed in as few digits as bring the same back", "[topology]") {
  CHECK(decimal(20.6e9, -9) == "20.6");
  CHECK(decimal(12e9, -9) == "12");
  CHECK(decimal(370.8e9, -9) == "370.8");
  CHECK(decimal(0.1875e9, -9) == "0.1875");
  CHECK(decimal(1, -9) == "0.000000001");
  CHECK(decimal(0.5, -9) == "5e-10");
  CHECK(decimal(0.25e-6, 6) == "0.25");
  CHECK(decimal(1.5, 6) == "1500000");
  CHECK(decimal(1e30, -9) == "1e21");
  CHECK(decimal(-2.5e9, -9) == "-2.5");
  CHECK(decimal(0, -9) == "0");
}

TEST_CASE("any topology with finite rates prints and reads equal", "[topology]") {
  test::for_each_seed(400, [](std::uint64_t seed) {
    std::mt19937_64 wide(seed);
    std::mt19937 random(static_cast<unsigned>(seed));
    Topology topology;
    for (std::size_t i = 0; i < 1 + random() % 9; ++i) {
      Site site{static_cast<SiteKind>(random() % 7),
                random_word(random) + std::to_string(i),
                static_cast<int>(random()),
                {}};
      for (std::size_t fact = random() % 4; fact > 0; --fact)
        site.facts[random_word(random)] = random_word(random);
      topology.add(std::move(site));
    }
    const auto site = [&] { return static_cast<int>(random() % topology.sites.size()); };
    for (std::size_t i = random() % 20; i > 0; --i) {
      const Link link{site(),
                      site(),
                      static_cast<LinkKind>(random() % 8),
                      static_cast<int>(random() % 3),
                      random_amount(wide),
                      random_amount(wide)};
      if (random() % 2 == 0)
        topology.connect(link.from, link.to, link);
      else
        topology.links.push_back(link);
    }
    for (std::size_t i = random() % 5; i > 0; --i) topology.place.push_back(site());
    const std::string text = print(topology);
    const Reading reading = parse_topology(text);
    INFO(text);
    REQUIRE(reading.topology);
    REQUIRE(*reading.topology == topology);
    REQUIRE(print(*reading.topology) == text);
  });
}
