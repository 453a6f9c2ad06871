// SPDX-License-Identifier: Apache-2.0
#include "api/config.h"

#include <fmt/format.h>

#include "base/error.h"
#include "communicator/init.h"

namespace khoro {
namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw Error(Code::invalid_argument, "config: " + why);
}

/// Patches of one minor version know the same fields.
constexpr unsigned generation(unsigned version) { return version / 100; }

void check_origin(const khoroConfig_t& config) {
  if (config.magic != KHORO_CONFIG_MAGIC)
    refuse(fmt::format("its magic is {:#x} and not {:#x}; start from KHORO_CONFIG_INITIALIZER",
                       config.magic, KHORO_CONFIG_MAGIC));
  if (generation(config.version) > generation(KHORO_VERSION))
    refuse(
        fmt::format("its version is {}, this library has version {} and reads none that is "
                    "newer; run the program with the library that it was built for",
                    config.version, KHORO_VERSION));
  if (config.size != sizeof(khoroConfig_t))
    refuse(
        fmt::format("its size is {} and not {}, which is that of version {}; start from "
                    "KHORO_CONFIG_INITIALIZER",
                    config.size, sizeof(khoroConfig_t), KHORO_VERSION));
}

}  // namespace

Chosen chosen_by(const khoroConfig_t* config) {
  Chosen chosen;
  if (!config) return chosen;
  check_origin(*config);
  if (config->blocking != KHORO_CONFIG_UNDEF_INT) {
    if (config->blocking != 0 && config->blocking != 1)
      refuse(fmt::format("blocking is {}; it must be 0, 1 or left undefined", config->blocking));
    chosen.blocking = config->blocking == 1;
  }
  if (config->settings) chosen.settings = config->settings;
  try {
    check_settings(chosen.settings);
  } catch (const Error& error) {
    refuse(fmt::format("settings: {}", error.what()));
  }
  return chosen;
}

}  // namespace khoro
