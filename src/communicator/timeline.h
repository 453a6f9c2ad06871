// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "communicator/operation.h"
#include "transport/wrap/trace.h"

namespace khoro {

/// What one rank of a communicator does, for the trace file: every call from its begin to its end,
/// and the messages of its collectives as arrows between ranks. Times are those of the machine's
/// monotonic clock, which all processes of a machine share, so there is nothing to merge.
///
/// Records are kept as they are, and are written out when there are many, twice a second, after a
/// failure and at the end, so that looking on costs a call as little as can be. One rank's thread
/// records while any other flushes.
class Timeline {
 public:
  /// Whose doings it shows.
  struct Track {
    std::uint64_t communicator = 0;
    int rank = 0;
    int ranks = 0;
  };

  explicit Timeline(const Track& track) : track_(track) {}
  ~Timeline() { flush(); }
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  /// `operation` is borrowed until it has finished or all are given up.
  void begin(const Operation& operation, Time now) noexcept;
  /// `algorithm` (static) is empty if it has none. Nothing if the trace did not see it begin.
  void finish(const Operation& operation, std::string_view algorithm, Time now) noexcept;
  /// All that is under way has failed.
  void give_up(Time now) noexcept;
  /// Of messages sent and received; the rest of what channels do is not kept.
  void message(const TraceEvent& event, Time now) noexcept;
  void flush() noexcept;

 private:
  struct Record {
    enum class Kind : std::uint8_t { call, failed_call, sent, received };
    Kind kind = Kind::call;
    std::uint8_t index = 0;  // of a message's channel
    std::int32_t peer = -1;  // of a message
    std::uint32_t tag = 0;   // of a call
    std::uint64_t number = 0;
    Signature signature{};
    std::string_view algorithm{};
    Time from{};
    Time to{};
  };
  struct Open {
    const Operation* operation;
    Time since;
  };

  void end(const Open& open, Record::Kind kind, std::string_view algorithm, Time now) noexcept;
  void keep(const Record& record) noexcept;
  void write_out() noexcept;
  void introduce(std::string& text);
  void write(std::string& text, const Record& record) const;
  void write_call(std::string& text, const Record& record) const;
  void write_message(std::string& text, const Record& record) const;

  const Track track_;
  std::mutex mutex_;
  int number_ = 0;  // of its line in the picture of its process; 0: it has none yet
  std::uint64_t introduced_in_ = 0;  // which trace file
  std::vector<Open> open_;
  std::vector<Record> records_;
};

}  // namespace khoro
