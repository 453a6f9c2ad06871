// SPDX-License-Identifier: Apache-2.0
#include "communicator/timeline.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <iterator>
#include <utility>

#include "base/hash.h"
#include "communicator/plan_table.h"
#include "communicator/trace_file.h"

namespace khoro {
namespace {

constexpr std::size_t most_records = 4'096;

/// The times of the format are in microseconds, of which the nanoseconds are a fraction.
std::string microseconds(Duration time) {
  return fmt::format("{}.{:03}", time.count() / 1'000, time.count() % 1'000);
}

template <class... Args>
void add(std::string& text, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
}

/// The same at both ends of a message, and of no other message in the job.
std::uint64_t arrow(std::uint64_t communicator, std::uint64_t from, std::uint64_t to,
                    std::uint64_t index, std::uint64_t number) noexcept {
  return combine(combine(communicator, from << 32 | to), index << 56 | number);
}

}  // namespace

void Timeline::begin(const Operation& operation, Time now) noexcept {
  const std::lock_guard lock(mutex_);
  // What began at this address before was not seen to end: the trace was off by then.
  std::erase_if(open_, [&](const Open& open) { return open.operation == &operation; });
  try {
    open_.push_back({&operation, now});
  } catch (const std::exception&) {
    // A call that is not shown.
  }
}

void Timeline::finish(const Operation& operation, std::string_view algorithm, Time now) noexcept {
  const std::lock_guard lock(mutex_);
  const auto open = std::find_if(open_.begin(), open_.end(),
                                 [&](const Open& each) { return each.operation == &operation; });
  if (open == open_.end()) return;
  end(*open, Record::Kind::call, algorithm, now);
  open_.erase(open);
}

void Timeline::give_up(Time now) noexcept {
  const std::lock_guard lock(mutex_);
  for (const Open& open : open_) end(open, Record::Kind::failed_call, {}, now);
  open_.clear();
  write_out();  // the program may end without more ado
}

void Timeline::end(const Open& open, Record::Kind kind, std::string_view algorithm,
                   Time now) noexcept {
  const Operation& operation = *open.operation;
  Record record;
  record.kind = kind;
  record.tag = operation.call.tag;
  record.number = operation.number;
  record.signature = operation.call.signature;
  record.algorithm = algorithm;
  record.from = open.since;
  record.to = now;
  keep(record);
}

void Timeline::message(const TraceEvent& event, Time now) noexcept {
  const bool received = event.kind == TraceEvent::Kind::observe;
  const bool sent = event.kind == TraceEvent::Kind::publish ||
                    event.kind == TraceEvent::Kind::publish_reference ||
                    event.kind == TraceEvent::Kind::publish_put;
  // Sends and receives may overlap, so they have no line of their own for an arrow to touch.
  if ((!received && !sent) || event.channel.index >= tagged_messages) return;
  Record record;
  record.kind = received ? Record::Kind::received : Record::Kind::sent;
  record.index = event.channel.index;
  record.peer = event.channel.peer;
  record.number = event.number;
  record.from = record.to = now;
  const std::lock_guard lock(mutex_);
  keep(record);
}

void Timeline::keep(const Record& record) noexcept {
  try {
    if (records_.capacity() == 0) records_.reserve(most_records);
    if (records_.size() == most_records) write_out();
    records_.push_back(record);
  } catch (const std::exception&) {
    // Lost for lack of memory.
  }
}

void Timeline::flush() noexcept {
  const std::lock_guard lock(mutex_);
  write_out();
}

void Timeline::write_out() noexcept {
  if (records_.empty()) return;
  try {
    std::string text;
    const std::uint64_t file = TraceFile::of_process().opened();
    if (file != std::exchange(introduced_in_, file)) introduce(text);
    for (const Record& record : records_) write(text, record);
    TraceFile::of_process().append(text);
  } catch (const std::exception&) {
    // Lost for lack of memory.
  }
  records_.clear();
}

void Timeline::introduce(std::string& text) {
  static std::atomic<int> numbers{0};
  if (number_ == 0) number_ = ++numbers;
  const auto name = [&](std::string_view what, int line, const std::string& value) {
    add(text,
        R"({{"ph":"M","pid":{},"tid":{},"name":"{}","args":{{{}}}}},)"
        "\n",
        ::getpid(), line, what, value);
  };
  name("process_name", number_, R"("name":"khoro")");
  name("thread_name", number_,
       fmt::format(R"("name":"rank {} of {}, communicator {:08x}")", track_.rank, track_.ranks,
                   track_.communicator & 0xffffffff));
  for (const std::string_view what : {"process_sort_index", "thread_sort_index"})
    name(what, number_, fmt::format(R"("sort_index":{})", track_.rank));
}

void Timeline::write(std::string& text, const Record& record) const {
  if (record.kind == Record::Kind::sent || record.kind == Record::Kind::received)
    write_message(text, record);
  else
    write_call(text, record);
}

/// A collective is a slice of the rank's line: only one is under way at a time. Sends and receives
/// may overlap and have lines that the viewer makes.
void Timeline::write_call(std::string& text, const Record& record) const {
  const Signature& signature = record.signature;
  std::string details =
      fmt::format(R"("number":{},"call":"{}")", record.number, describe(signature, record.tag));
  if (!record.algorithm.empty()) add(details, R"(,"algorithm":"{}")", record.algorithm);
  if (record.kind == Record::Kind::failed_call) details += R"(,"failed":true)";
  const auto event = [&](std::string_view phase, const std::string& rest) {
    add(text,
        R"({{"ph":"{}","pid":{},"tid":{},"cat":"call","name":"{}",{},"args":{{{}}}}},)"
        "\n",
        phase, ::getpid(), number_, name(signature.kind), rest, details);
  };
  if (!signature.point_to_point())
    return event("X", fmt::format(R"("ts":{},"dur":{})", microseconds(record.from),
                                  microseconds(record.to - record.from)));
  const std::uint64_t id =
      combine(combine(track_.communicator, static_cast<std::uint64_t>(track_.rank)),
              combine(signature.word() ^ record.tag, record.number));
  event("b", fmt::format(R"("ts":{},"id2":{{"local":"{:x}"}})", microseconds(record.from), id));
  event("e", fmt::format(R"("ts":{},"id2":{{"local":"{:x}"}})", microseconds(record.to), id));
}

void Timeline::write_message(std::string& text, const Record& record) const {
  const bool sent = record.kind == Record::Kind::sent;
  const int from = sent ? track_.rank : record.peer, to = sent ? record.peer : track_.rank;
  add(text,
      R"({{"ph":"{}","pid":{},"tid":{},"cat":"message","name":"message","ts":{},"id":"{:x}"}},)"
      "\n",
      sent ? "s" : R"(f","bp":"e)", ::getpid(), number_, microseconds(record.from),
      arrow(track_.communicator, static_cast<std::uint64_t>(from), static_cast<std::uint64_t>(to),
            record.index, record.number));
}

}  // namespace khoro
