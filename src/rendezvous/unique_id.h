// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "rendezvous/hmac.h"

namespace khoro {

/// The 128 bytes that ranks pass to each other: version, key, communicator and where to meet.
/// Holding it is the right to join.
struct UniqueId {
  static constexpr std::uint32_t current_version = 1;

  std::uint32_t version = current_version;
  /// Whoever meets here may be there before the host is. An id that was handed out by its host
  /// says no: then an empty place is a reason to give up, not to wait.
  bool host_may_be_late = false;
  std::uint64_t communicator = 0;
  Key key{};
  /// Name of an abstract unix socket, without the leading zero byte; at most 40 characters.
  std::string socket;

  /// A new id with a key from the system's random source.
  static UniqueId draw();
  /// The id of the job's communicator number `ordinal`: the same on every rank that holds the same
  /// key, and of no use to who does not.
  static UniqueId of_job(const Key& key, std::uint64_t ordinal);

  std::array<char, 128> encode() const;
  /// Throws invalid_argument for bytes that no encode() made.
  static UniqueId decode(const std::array<char, 128>& bytes);
  /// Safe to print: tells ids apart and gives nothing away.
  std::string fingerprint() const;
};

/// Reads a job's key from a sealed descriptor that a launcher passed on, with pread, so that every
/// thread and every child can. Throws invalid_argument, naming KHORO_KEY_FD, when the descriptor is
/// none or holds no key.
Key read_job_key(int descriptor);
/// A job's key from the contents of a file, 32 to 4,096 bytes. Throws invalid_argument, naming
/// KHORO_JOB_KEY_FILE, for a file that cannot be read, or that another user owns, may read or may
/// write.
Key read_job_key(const std::string& path);
/// The key of a job that has none but what its launcher says of it, of this user. It can be
/// guessed, so it keeps jobs apart and nothing else: the meeting lets in the same user alone.
Key key_of_named_job(std::string_view job);
/// A descriptor to be inherited that holds `key`: a sealed memfd, open across exec. Throws
/// system_error.
int make_job_key_descriptor(const Key& key);

}  // namespace khoro
