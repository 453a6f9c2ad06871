// SPDX-License-Identifier: Apache-2.0
#include "communicator/recorder.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "base/error.h"
#include "base/log.h"
#include "base/packet_socket.h"
#include "communicator/process.h"
#include "rendezvous/unique_id.h"

namespace khoro {

Cause RecorderPacket::cause() const noexcept {
  Cause cause;
  cause.code = code_of(code, Code::remote_error);
  cause.culprit = culprit >= 0 && culprit < ranks ? culprit : -1;
  cause.kind = call_kind < call_kinds ? static_cast<CallKind>(call_kind) : CallKind::allreduce;
  cause.operation = operation;
  cause.tag = tag;
  return cause;
}

std::string recorder_name(const Key& key) {
  const Digest digest = hmac(key, {bytes_of("khoro flight recorder")});
  std::uint64_t word;
  std::memcpy(&word, digest.data(), sizeof word);
  return fmt::format("khoro-recorder-{:016x}", word);
}

std::unique_ptr<Recorder> Recorder::of_launcher(const Settings& settings, const Member& member) {
  const auto socket = static_cast<int>(settings.recorder_descriptor);
  if (socket < 0 || settings.key_descriptor < 0) return nullptr;
  try {
    const Key key = read_job_key(static_cast<int>(settings.key_descriptor));
    if (name_of_peer(socket) == recorder_name(key))
      return std::unique_ptr<Recorder>(new Recorder(Descriptor(socket), member));
  } catch (const Error&) {
    // Whoever needs the key says that it is gone.
  }
  log(LogLevel::info,
      "rank {}: the launcher does not record it: KHORO_RECORDER_FD is {}, which "
      "was closed between the launcher and this call",
      member.rank, socket);
  return nullptr;
}

Recorder::~Recorder() {
  if (!Process::forked()) send(packet(RecorderPacket::left));
  socket_.take();  // it is the process's, and stays open
}

void Recorder::show(int memory) const noexcept {
  const RecorderPacket joined = packet(RecorderPacket::joined);
  for (int pause = 1; pause < 1'000; pause *= 2) {
    if (send(joined, memory)) return;
    ::poll(nullptr, 0, pause);
  }
  log(LogLevel::warn,
      "rank {}: the launcher does not record it: it did not take its packets for "
      "a second",
      member_.rank);
}

void Recorder::failed(const Cause& cause, const std::string& words) noexcept {
  RecorderPacket failed = packet(RecorderPacket::failed);
  failed.code = static_cast<std::int32_t>(cause.code);
  failed.culprit = cause.culprit;
  failed.call_kind = static_cast<std::uint32_t>(cause.kind);
  failed.operation = cause.operation;
  failed.tag = cause.tag;
  const std::size_t length = std::min(words.size(), failed.words.size());
  std::copy_n(words.begin(), length, failed.words.begin());
  failed.length = static_cast<std::uint32_t>(length);
  send(failed);
}

RecorderPacket Recorder::packet(RecorderPacket::Kind kind) const noexcept {
  RecorderPacket packet;
  packet.kind = kind;
  packet.communicator = member_.communicator;
  packet.rank = member_.rank;
  packet.ranks = member_.ranks;
  packet.pid = ::getpid();
  return packet;
}

/// False if the launcher must take packets first.
bool Recorder::send(const RecorderPacket& packet, int memory) const noexcept {
  const auto bytes = std::as_bytes(std::span(&packet, 1));
  const PacketStatus status =
      memory < 0 ? send_packet(socket_, bytes) : send_packet(socket_, bytes, {&memory, 1});
  return status != PacketStatus::again && status != PacketStatus::exhausted;
}

}  // namespace khoro
