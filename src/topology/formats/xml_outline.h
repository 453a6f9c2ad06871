// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace khoro {

/// What keeps an XML text from being parsed: where, and in words.
struct XmlFault {
  std::size_t offset = 0;
  std::string message;  // empty: nothing found
};

/// Follows the tags of an XML text, attributes unread: whether they are complete and closed in
/// order, and few enough. A parser that fails later can say less of what it failed at.
XmlFault outline_fault(std::string_view text);

/// The name of the first element, "" if there is none.
std::string_view root_name(std::string_view text);

/// Whether the text declares entities of its own.
bool declares_entities(std::string_view text);

}  // namespace khoro
