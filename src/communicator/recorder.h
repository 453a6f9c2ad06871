// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/descriptor.h"
#include "base/settings.h"
#include "communicator/witness.h"
#include "rendezvous/hmac.h"

namespace khoro {

/// What a rank tells the flight recorder of its launcher, over a socket that it inherited: one
/// packet, never answered. With `joined` comes the descriptor of its shared memory, in whose first
/// pages the launcher reads then what the rank does, and did when it has died.
struct RecorderPacket {
  static constexpr std::uint32_t current_version = 2;
  enum Kind : std::uint32_t { joined = 1, failed = 2, left = 3 };

  std::uint32_t version = current_version;  // first, for every later version too
  std::uint32_t kind = 0;
  std::uint64_t communicator = 0;
  std::int32_t rank = 0;
  std::int32_t ranks = 0;
  std::int32_t pid = 0;
  // Of a failure.
  std::int32_t code = 0;
  std::int32_t culprit = -1;
  std::uint32_t call_kind = 0;
  std::uint64_t operation = 0;
  std::uint32_t tag = 0;
  std::uint32_t length = 0;
  std::array<char, 960> words{};

  Cause cause() const noexcept;
};
static_assert(sizeof(RecorderPacket) == 1016);

/// The name, in the abstract name space, of the launcher's end of that socket: a rank tells by it
/// that the inherited number is still that socket.
std::string recorder_name(const Key& key);

/// One rank's end, for one communicator.
class Recorder final : public Witness {
 public:
  struct Member {
    std::uint64_t communicator = 0;
    int rank = 0;
    int ranks = 0;
  };

  /// Null if no launcher records, or the program has closed what it inherited from it.
  static std::unique_ptr<Recorder> of_launcher(const Settings& settings, const Member& member);
  /// Says that the rank has left.
  ~Recorder() override;

  /// Shows the rank's shared memory. Waits up to a second for a launcher that is busy.
  void show(int memory) const noexcept;
  void failed(const Cause& cause, const std::string& words) noexcept override;

 private:
  Recorder(Descriptor socket, const Member& member) : socket_(std::move(socket)), member_(member) {}
  RecorderPacket packet(RecorderPacket::Kind kind) const noexcept;
  bool send(const RecorderPacket& packet, int memory = -1) const noexcept;

  Descriptor socket_;  // inherited
  Member member_;
};

}  // namespace khoro
