// SPDX-License-Identifier: Apache-2.0
#include "device/drivers.h"

#include <set>
#include <string>

#include "conformance/driver.h"
#include "support/virtual_gpus.h"

using namespace khoro;

TEST_CASE("every driver that works here keeps what drivers promise", "[device]") {
  std::set<std::string_view> names;
  for (const DriverRow& row : drivers()) {
    INFO(row.name);
    CHECK(names.insert(row.name).second);
    std::string why_not;
    const auto driver = open_driver(row.name, {test::virtual_gpus(2)}, why_not);
    CHECK((driver == nullptr) == !why_not.empty());
    if (driver == nullptr) continue;
    CHECK(driver->name() == row.name);
    conformance::check_driver(*driver);
  }
}

TEST_CASE("a driver that is not here says why", "[device]") {
  std::string why_not;
  CHECK(open_driver("virtual", {}, why_not) == nullptr);
  CHECK(why_not == "no virtual GPUs were asked for");
  CHECK(conformance::code_of_call([&] { open_driver("opencl", {}, why_not); }) ==
        Code::invalid_argument);
}
