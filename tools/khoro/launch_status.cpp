// SPDX-License-Identifier: Apache-2.0
#include "launch_status.h"

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <exception>
#include <nlohmann/json.hpp>
#include <span>

#include "base/error.h"
#include "base/packet_socket.h"
#include "base/random.h"
#include "base/shared_memory.h"

namespace khoro::tool {
namespace {

using nlohmann::ordered_json;

/// A memfd that holds `text`. Throws `Error`.
Descriptor hold(const std::string& text) {
  Descriptor memory = make_shared_memory("khoro-status", text.size());
  if (::pwrite(memory.number(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
    throw_errno("cannot write the status");
  return memory;
}

std::string calendar(std::int64_t seconds) {
  const auto time = static_cast<time_t>(seconds);
  tm parts{};
  char text[32];
  ::gmtime_r(&time, &parts);
  ::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

ordered_json describe(const RankAccount& rank) {
  // A report is of the moment of the failure; this is of now.
  const bool over = rank.verdict == RankVerdict::in_call && rank.gave_up;
  const std::string_view verdict = over ? "failed in a call" : name(rank.verdict);
  return {{"rank", rank.rank},          {"pid", rank.pid},     {"verdict", verdict},
          {"detail", rank.detail},      {"calls", rank.calls}, {"last_finished", rank.finished},
          {"under_way", rank.under_way}};
}

ordered_json describe(const FlightRecorder::Account& communicator) {
  ordered_json text = {{"number", communicator.number},
                       {"ranks", communicator.ranks},
                       {"headline", headline(group(communicator.members))},
                       {"failure", nullptr},
                       {"members", ordered_json::array()}};
  if (const auto& failure = communicator.failure)
    text["failure"] = {{"rank", failure->rank}, {"words", failure->words}};
  for (const RankAccount& rank : communicator.members) text["members"].push_back(describe(rank));
  return text;
}

}  // namespace

StatusListener::StatusListener() noexcept {
  try {
    // Where the word is random, no other user can have taken the name.
    socket_ = listen_on(
        fmt::format("{}{}-{}-{:016x}", job_socket_prefix, ::geteuid(), ::getpid(), draw_random()));
  } catch (const std::exception&) {
  }
}

void StatusListener::answer(Time now, const std::function<std::string()>& status) noexcept {
  const Accepted who = accept_from(socket_);
  if (who.exhausted) rests_until_ = now + std::chrono::seconds(1);
  if (!who.socket) return;
  const auto peer = peer_of(who.socket);
  if (!peer || (peer->user != ::geteuid() && peer->user != 0)) return;
  try {
    const std::string text = status();
    const Descriptor memory = hold(text);
    StatusReply reply;
    reply.bytes = text.size();
    const int passed = memory.number();
    // The queue of who asks is empty, so this is taken or will never be.
    send_packet(who.socket, std::as_bytes(std::span(&reply, 1)), {&passed, 1});
  } catch (const std::exception&) {
    // Who asks sees the connection end.
  }
}

std::string describe_job(const JobFacts& facts,
                         const std::vector<FlightRecorder::Account>& communicators) {
  const Job& job = *facts.job;
  ordered_json text = {{"version", 1},
                       {"pid", ::getpid()},
                       {"program", job.command.front()},
                       {"command", job.command},
                       {"ranks", job.ranks()},
                       {"processes", job.processes},
                       {"running", facts.running},
                       {"since", calendar(facts.since)},
                       {"communicators", ordered_json::array()}};
  for (const auto& communicator : communicators)
    text["communicators"].push_back(describe(communicator));
  return text.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace khoro::tool
