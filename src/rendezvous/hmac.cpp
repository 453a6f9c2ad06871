// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/hmac.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <cstring>

// OpenSSL's HMAC() would link its whole provider machinery, 3.8 MB, into the library; its SHA-256
// alone is 35 kB, and the construction of RFC 2104 on top of it is what follows.

namespace khoro {
namespace {

constexpr std::size_t block_bytes = SHA256_CBLOCK;

using Block = std::array<std::uint8_t, block_bytes>;

class Hash {
 public:
  Hash() noexcept { SHA256_Init(&state_); }
  ~Hash() { OPENSSL_cleanse(&state_, sizeof state_); }
  Hash(const Hash&) = delete;
  Hash& operator=(const Hash&) = delete;
  void add(std::span<const std::uint8_t> bytes) noexcept {
    SHA256_Update(&state_, bytes.data(), bytes.size());
  }
  Digest end() noexcept {
    Digest digest;
    SHA256_Final(digest.data(), &state_);
    return digest;
  }

 private:
  SHA256_CTX state_;
};

void add_padded_key(Hash& hash, Block block, std::uint8_t padding) noexcept {
  for (std::uint8_t& byte : block) byte ^= padding;
  hash.add(block);
  wipe(block);
}

}  // namespace

Digest hmac(std::span<const std::uint8_t> key,
            std::initializer_list<std::span<const std::uint8_t>> parts) noexcept {
  Block block{};
  if (key.size() > block_bytes) {
    Hash hash;
    hash.add(key);
    Digest digest = hash.end();
    std::memcpy(block.data(), digest.data(), digest.size());
    wipe(digest);
  } else {
    std::copy(key.begin(), key.end(), block.begin());
  }
  Hash inner, outer;
  add_padded_key(inner, block, 0x36);
  for (auto part : parts) inner.add(part);
  add_padded_key(outer, block, 0x5c);
  outer.add(inner.end());
  wipe(block);
  return outer.end();
}

bool equal_in_constant_time(const Digest& a, const Digest& b) noexcept {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

void wipe(std::span<std::uint8_t> secret) noexcept {
  OPENSSL_cleanse(secret.data(), secret.size());
}

}  // namespace khoro
