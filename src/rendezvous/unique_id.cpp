// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/unique_id.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/random.h"

namespace khoro {
namespace {

constexpr char id_magic[8] = {'k', 'h', 'o', 'r', 'o', '-', 'i', 'd'};
constexpr std::size_t most_socket_name = 40;
constexpr int most_key_file = 4'096;

/// The version comes first, for every later version too. Little-endian, as the machines are.
struct Encoded {
  std::uint32_t version;
  std::uint32_t host_may_be_late;
  char magic[8];
  std::uint64_t communicator;
  Key key;
  std::uint8_t socket_length;
  char socket[most_socket_name];
  char reserved[23];  // zero; an address for other machines
  std::uint64_t checksum;
};
static_assert(sizeof(Encoded) == 128 && offsetof(Encoded, checksum) == 120);

std::uint64_t checksum_of(const Encoded& encoded) {
  Digest digest = hmac({}, {bytes_of(encoded).first(offsetof(Encoded, checksum))});
  std::uint64_t sum;
  std::memcpy(&sum, digest.data(), sizeof sum);
  return sum;
}

[[noreturn]] void refuse(const char* why) {
  throw Error(Code::invalid_argument,
              fmt::format("the unique id is not one: {}; pass on all 128 bytes that "
                          "khoroGetUniqueId wrote",
                          why));
}

std::string socket_name(std::uint64_t a, std::uint64_t b) {
  return fmt::format("khoro-{:016x}{:016x}", a, b);
}

}  // namespace

UniqueId UniqueId::draw() {
  UniqueId id;
  draw_random(id.key);
  id.communicator = draw_random();
  id.socket = socket_name(draw_random(), draw_random());
  return id;
}

UniqueId UniqueId::of_job(const Key& key, std::uint64_t ordinal) {
  UniqueId id;
  id.host_may_be_late = true;
  id.key = hmac(key, {bytes_of("khoro meeting key"), bytes_of(ordinal)});
  Digest place = hmac(key, {bytes_of("khoro meeting place"), bytes_of(ordinal)});
  std::uint64_t words[3];
  std::memcpy(words, place.data(), sizeof words);
  id.communicator = words[0];
  id.socket = socket_name(words[1], words[2]);
  return id;
}

std::array<char, 128> UniqueId::encode() const {
  Encoded encoded{};
  encoded.version = version;
  encoded.host_may_be_late = host_may_be_late;
  std::memcpy(encoded.magic, id_magic, sizeof id_magic);
  encoded.communicator = communicator;
  encoded.key = key;
  if (socket.size() > most_socket_name)
    throw Error(Code::internal_error, fmt::format("socket name '{}' is too long", socket));
  encoded.socket_length = static_cast<std::uint8_t>(socket.size());
  std::memcpy(encoded.socket, socket.data(), socket.size());
  encoded.checksum = checksum_of(encoded);
  std::array<char, 128> bytes;
  std::memcpy(bytes.data(), &encoded, sizeof encoded);
  wipe({reinterpret_cast<std::uint8_t*>(&encoded), sizeof encoded});
  return bytes;
}

UniqueId UniqueId::decode(const std::array<char, 128>& bytes) {
  Encoded encoded;
  std::memcpy(&encoded, bytes.data(), sizeof encoded);
  if (std::memcmp(encoded.magic, id_magic, sizeof id_magic) != 0)
    refuse("it does not start as one does");
  if (encoded.version != current_version)
    throw Error(Code::invalid_argument,
                fmt::format("the unique id has version {}, this library reads version {}; use the "
                            "same version of Khoro in all processes",
                            encoded.version, current_version));
  if (encoded.checksum != checksum_of(encoded)) refuse("its bytes were changed on the way");
  if (encoded.socket_length == 0 || encoded.socket_length > most_socket_name ||
      encoded.host_may_be_late > 1)
    refuse("it names no place to meet");
  UniqueId id;
  id.host_may_be_late = encoded.host_may_be_late != 0;
  id.communicator = encoded.communicator;
  id.key = encoded.key;
  id.socket.assign(encoded.socket, encoded.socket_length);
  return id;
}

std::string UniqueId::fingerprint() const {
  Digest digest = hmac(key, {bytes_of("khoro fingerprint"), bytes_of(communicator)});
  return fmt::format("{:02x}{:02x}{:02x}{:02x}", digest[0], digest[1], digest[2], digest[3]);
}

Key read_job_key(int descriptor) {
  Key key;
  ssize_t size = ::pread(descriptor, key.data(), key.size(), 0);
  if (size == static_cast<ssize_t>(key.size())) return key;
  throw Error(Code::invalid_argument,
              fmt::format("KHORO_KEY_FD is {}, which holds no key ({}): the descriptor was closed "
                          "between the launcher and this call; start the program with `khoro run`",
                          descriptor, size < 0 ? words_of_errno() : "too short"));
}

Key read_job_key(const std::string& path) {
  const auto refuse = [&](const std::string& why) {
    throw Error(Code::invalid_argument,
                fmt::format("KHORO_JOB_KEY_FILE is {}, which {}", path, why));
  };
  // Not to block on what is no file. The checks are of what was opened, whatever has the name now.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status {};
  if (!file || ::fstat(file.number(), &status) != 0)
    refuse(
        fmt::format("cannot be read: {}; make it with `(umask 077; head -c 32 /dev/urandom > "
                    "FILE)`",
                    words_of_errno()));
  if (!S_ISREG(status.st_mode)) refuse("is no file; name one that holds the job's key");
  if (status.st_uid != ::geteuid())
    refuse(fmt::format("belongs to user {} and not to this one ({}); use a file of your own",
                       status.st_uid, ::geteuid()));
  if ((status.st_mode & 07777 & ~0600) != 0)
    refuse(
        fmt::format("has mode {:04o}, so that others may know the key; `chmod 600` it, or better "
                    "make a new one",
                    status.st_mode & 07777));
  std::array<std::uint8_t, most_key_file + 1> bytes;
  const ssize_t size = ::pread(file.number(), bytes.data(), bytes.size(), 0);
  if (size < static_cast<ssize_t>(Key().size()) || size > most_key_file)
    refuse(fmt::format("holds {} bytes; a key has {} to {}", size < 0 ? 0 : status.st_size,
                       Key().size(), most_key_file));
  const std::span<std::uint8_t> contents(bytes.data(), static_cast<std::size_t>(size));
  const Key key = hmac({}, {bytes_of("khoro job key file"), contents});
  wipe(contents);
  return key;
}

Key key_of_named_job(std::string_view job) {
  const std::uint64_t user = ::geteuid();
  return hmac({}, {bytes_of("khoro named job"), bytes_of(user), bytes_of(job)});
}

int make_job_key_descriptor(const Key& key) {
  Descriptor file(::memfd_create("khoro-key", MFD_ALLOW_SEALING));
  if (!file || ::pwrite(file.number(), key.data(), key.size(), 0) != ssize_t(key.size()) ||
      ::fcntl(file.number(), F_ADD_SEALS,
              F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0)
    throw_errno("cannot make a descriptor for the job's key");
  return file.take();
}

}  // namespace khoro
