// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace khoro {

using Key = std::array<std::uint8_t, 32>;

/// The 128 bytes that ranks pass to each other: version, key, communicator and where to meet.
/// Holding it is the right to join.
struct UniqueId {
  std::uint32_t version = 1;
  std::uint64_t communicator = 0;
  Key key{};
  /// Name of an abstract unix socket, without the leading zero byte.
  std::string socket;

  /// A new id with a key from the system's random source.
  static UniqueId draw();
  /// The id of a launcher's job: the same on every rank that holds the same key.
  static UniqueId of_job(const Key& key, std::uint64_t ordinal);

  std::array<char, 128> encode() const;
  /// Throws invalid_argument for bytes that no encode() made.
  static UniqueId decode(const std::array<char, 128>& bytes);
  /// Safe to print: tells ids apart and gives nothing away.
  std::string fingerprint() const;
};

}  // namespace khoro
