// SPDX-License-Identifier: Apache-2.0
#include "communicator/gpus.h"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <string>

#include "base/error.h"
#include "base/log.h"
#include "base/settings.h"
#include "communicator/virtual_gpus.h"
#include "device/drivers.h"

namespace khoro {
namespace {

struct Opened {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<Driver>, std::less<>> by_name;
};
Opened& opened() {
  static auto* const opened = new Opened;
  return *opened;
}

}  // namespace

std::shared_ptr<Driver> gpus_of_process(std::string_view name) {
  const std::lock_guard lock(opened().mutex);
  std::weak_ptr<Driver>& known = opened().by_name[std::string(name)];
  if (auto driver = known.lock()) return driver;
  DriverSetup setup;
  if (name == "virtual") setup.virtual_machine = virtual_machine_of(Settings::from_environment());
  std::string why_not;
  std::shared_ptr<Driver> driver = open_driver(name, setup, why_not);
  if (!driver)
    throw Error(Code::invalid_usage,
                fmt::format("KHORO_MEMORY={}: {}{}", name, why_not,
                            name == "virtual" ? "; KHORO_VIRTUAL_GPUS says how many" : ""));
  log(LogLevel::info, "{} GPUs of {}{}", driver->devices(), name,
      driver->devices() > 0 ? ", the first " + driver->facts(0).name : "");
  known = driver;
  return driver;
}

}  // namespace khoro
