// SPDX-License-Identifier: Apache-2.0
#include "api/guard.h"

#include <string>

namespace khoro {
namespace {

std::string& words_of_thread() noexcept {
  static thread_local std::string words;
  return words;
}

}  // namespace

khoroResult_t keep_failure(Code code, std::string_view message) noexcept {
  std::string& words = words_of_thread();
  try {
    words.assign(message);
  } catch (const std::bad_alloc&) {
    words.assign("no memory");  // fits in the string itself
  }
  return static_cast<khoroResult_t>(code);
}

const char* last_failure() noexcept { return words_of_thread().c_str(); }

void check_out(const void* address, const char* name) {
  if (!address)
    throw Error(Code::invalid_argument,
                std::string(name) + " is NULL; pass the address to write it to");
}

void throw_forked() {
  throw Error(Code::invalid_usage,
              "this process was forked from one that uses Khoro and cannot use it; fork before the "
              "first call, or exec a program");
}

void throw_called_back() {
  throw Error(Code::invalid_usage,
              "a callback of Khoro called it; note what happened and let another thread make the "
              "call");
}

}  // namespace khoro
