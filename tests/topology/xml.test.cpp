// SPDX-License-Identifier: Apache-2.0
#include "topology/formats/xml.h"

#include <string>

#include "support/catch.h"
#include "topology/formats/attributes.h"
#include "topology/formats/xml_outline.h"
#include "topology/formats/xml_writer.h"

using namespace khoro;

namespace {

struct Found {
  int line = 0;
  int column = 0;
  std::string message;
};

/// The error for which a text is no XML; no message if it is.
Found fault_of(const std::string& text) {
  Findings findings;
  const XmlText xml(text, findings);
  const bool failed = findings.failed();
  for (const Diagnostic& diagnostic : findings.take())
    if (diagnostic.severity == Severity::error)
      return {diagnostic.line, diagnostic.column, diagnostic.message};
  CHECK(!failed);
  CHECK(xml.root());
  return {};
}

void faulty(const std::string& text, int line, int column, const std::string& message) {
  INFO(text);
  const Found found = fault_of(text);
  CHECK(found.line == line);
  CHECK(found.column == column);
  CHECK(found.message == message);
}

std::string nested(std::size_t depth) {
  std::string text;
  for (std::size_t i = 0; i < depth; ++i) text += "<a>";
  for (std::size_t i = 0; i < depth; ++i) text += "</a>";
  return text;
}

}  // namespace

TEST_CASE("what is no XML is said where it stops being XML", "[topology]") {
  faulty("", 1, 1, "the text is empty");
  faulty(" \n\t\n", 1, 1, "the text is empty");
  faulty("hello", 1, 1, "the text has no XML element");
  faulty("<!-- a -->", 1, 1, "the text has no XML element");
  faulty("<a>\n <b>\n</a>", 3, 1, "</a> where </b> is due, to close the element of line 2");
  faulty("<a>\n <b/>\n", 3, 1, "the text ends before </a>, the end of the element of line 1");
  faulty("<a>\n <b c='", 2, 2, "the text ends inside the tag <b");
  faulty("<a>\n </a", 2, 2, "the text ends inside the tag </a");
  faulty("<a/>\n</a>", 2, 1, "</a> closes nothing");
  faulty("<a/>\n<b/>", 2, 1, "a second root element, <b>: a text holds one");
  faulty("<a>\n<!-- b </a>", 2, 1, "the text ends inside a comment that begins here");
  faulty("<a>\n<![CDATA[ </a>", 2, 1, "the text ends inside a CDATA section that begins here");
  faulty("<a>\n<? b </a>", 2, 1, "the text ends inside a processing instruction that begins here");
  faulty("\n<!DOCTYPE a [<!ENTITY b 'c>", 2, 1,
         "the text ends inside a document type that begins here");
  CHECK(fault_of("<a b=c/>").message == "this is no XML: Error parsing element attribute");
  CHECK(fault_of(std::string("<a>\n") + '\0' + "</a>").line == 2);
}

TEST_CASE("texts beyond the limits are refused before they are parsed", "[topology]") {
  CHECK(fault_of(nested(128)).message.empty());
  faulty(nested(129), 1, 3 * 128 + 1, "elements nested more than 128 deep");
  CHECK(fault_of(std::string((16 << 20) + 1, ' ')).message ==
        "16777217 bytes: at most 16777216 are read");
  CHECK(fault_of("<a b='" + std::string(70000, 'c') + "'/>").message ==
        "a tag of more than 65536 bytes");
  CHECK(fault_of("<a b='" + std::string(65000, 'c') + "'/>").message.empty());
  std::string many = "<a>";
  for (int i = 0; i < 140'000; ++i) many += "<b/>";
  CHECK(fault_of(many + "</a>").message == "more than 131072 elements");
  CHECK(fault_of("<a>" + std::string(600'000, '=') + "</a>").message ==
        "more than 524288 attributes");
}

TEST_CASE("entities that a text declares are never replaced", "[topology]") {
  const std::string text =
      "<!DOCTYPE a [<!ENTITY x \"yyy\"> <!ENTITY z SYSTEM \"/etc/hostname\">]>\n"
      "<a b=\"&x;&z;&amp;&#65;\"/>";
  Findings findings;
  const XmlText xml(text, findings);
  CHECK(std::string(xml.root().attribute("b").value()) == "&x;&z;&A");
  const auto diagnostics = findings.take();
  REQUIRE(diagnostics.size() == 1);
  CHECK(diagnostics[0].severity == Severity::warning);
}

TEST_CASE("elements and attributes are found again in their text", "[topology]") {
  const std::string text =
      "\xEF\xBB\xBF<?xml version='1.0'?>\r\n<!-- <b> -->\n<a>\n"
      "  <b cd='d=' \td = 'e'\n   c='>'/></a>";
  Findings findings;
  const XmlText xml(text, findings);
  const pugi::xml_node b = xml.root().child("b");
  REQUIRE(b);
  CHECK(xml.of(b).line == 4);
  CHECK(xml.of(b).column == 3);
  CHECK(xml.of(b, "cd").column == 6);
  CHECK(xml.of(b, "d").column == 15);
  CHECK(xml.of(b, "c").line == 5);
  CHECK(xml.of(b, "c").column == 4);
  CHECK(xml.of(b, "none").column == 3);
  CHECK(xml.first_loose_tag().line == 4);
  CHECK(xml.first_loose_tag().column == 13);
}

TEST_CASE("of many diagnostics the first are kept, and the first error", "[topology]") {
  Findings findings;
  for (int i = 1000; i > 0; --i) findings.note({i, 1}, "", "odd");
  CHECK(!findings.failed());
  findings.error({5, 2}, "x", "wrong");
  findings.error({6, 2}, "x", "wrong too");
  CHECK(findings.failed());
  const auto kept = findings.take();
  REQUIRE(kept.size() == 202);
  CHECK(kept[0].message == "wrong");
  CHECK(kept[1].line == 801);
  CHECK(kept.back().message == "801 more of this kind are not shown");
}

TEST_CASE("bus ids have one spelling", "[topology]") {
  CHECK(bus_id_of("0000:06:00.0") == "0000:06:00.0");
  CHECK(bus_id_of("10000:E2:1F.7") == "10000:e2:1f.7");
  CHECK(bus_id_of("3b:00.1") == "0000:3b:00.1");
  CHECK(bus_id_of("0:6:0.0") == "0000:06:00.0");
  CHECK(bus_id_of("00000008:06:00.0") == "0008:06:00.0");
  CHECK(bus_id_of("fffffff:ff:ff.0") == "fffffff:ff:ff.0");
  for (const char* wrong : {"", ".", ":", "0000:06:00", "06.0", "0000:06:00.10", "0000:106:00.0",
                            "g000:06:00.0", "0:0000:06:00.0", "000000000:06:00.0", "0000:06:00.0 ",
                            ":06:00.0", "0000::00.0", "0000:06:.0", "0000.06:00"}) {
    INFO(wrong);
    CHECK(!bus_id_of(wrong));
  }
}

TEST_CASE("numbers are whole texts in decimal or with 0x", "[topology]") {
  CHECK(integer_of("10") == 10);
  CHECK(integer_of("-1") == -1);
  CHECK(integer_of("0x1F") == 31);
  CHECK(integer_of("007") == 7);
  for (const char* wrong :
       {"", "-", "--1", "1 ", " 1", "0x", "1.0", "x1", "99999999999999999999"}) {
    INFO(wrong);
    CHECK(!integer_of(wrong));
  }
}

TEST_CASE("XML is written so that any parser reads it", "[topology]") {
  XmlWriter xml;
  xml.begin("a",
            {{"b", "<&\">'\n"}, {"no name", "x"}, {"1", "x"}, {"c-1.d", std::string(1, '\0')}});
  xml.element("e", {});
  xml.begin("f", {});
  xml.element("g", {{"h", "i"}});
  xml.end();
  xml.end();
  CHECK(xml.take() ==
        "<a b=\"&#60;&#38;&#34;&#62;'&#10;\" c-1.d=\"\">\n  <e/>\n  <f>\n    <g h=\"i\"/>\n  "
        "</f>\n</a>\n");
}
