// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <set>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "transport/transport.h"

namespace khoro {

/// The ends of one kind that a transport has opened, each of which there may be once.
class Claims {
 public:
  /// Names of the transport and the kind, for people. Borrowed.
  Claims(std::string_view transport, std::string_view end) : transport_(transport), end_(end) {}

  /// Throws internal_error if it was claimed before.
  void claim(const ChannelName& name) {
    if (!claimed_.emplace(name.peer, name.index).second)
      throw Error(Code::internal_error, fmt::format("{}: the {} of channel {}.{} was opened twice",
                                                    transport_, end_, name.peer, name.index));
  }

 private:
  std::string_view transport_;
  std::string_view end_;
  std::set<std::pair<int, int>> claimed_;
};

}  // namespace khoro
