// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

#include "topology/formats/attributes.h"

/// The elements of NCCL's topology XML: their attributes in the order in which they are written,
/// and what stands in for values that make no sense.
namespace khoro::nccl {

/// What links say of a switch that cannot be seen from here.
inline constexpr std::string_view invisible = "fffffff:ff:ff.0";

inline constexpr long long most = 2'147'483'647;

inline constexpr std::array<AttributeRule, 2> system_rules = {{{"version"}, {"name"}}};

inline constexpr std::array<AttributeRule, 7> cpu_rules = {{
    {"host_hash"},
    {"numaid", Form::integer, -1, most},
    {"affinity", Form::cpu_set, 0, 0, ""},
    {"arch"},
    {"vendor"},
    {"familyid", Form::integer, 0, most, ""},
    {"modelid", Form::integer, 0, most, ""},
}};

// The speed is kept as it is: what it means, and what it should be, is decided when all of the
// tree is known.
inline constexpr std::array<AttributeRule, 8> pci_rules = {{
    {"busid"},
    {"class", Form::hexadecimal, 0, 0, ""},
    {"vendor", Form::hexadecimal, 0, 0, ""},
    {"device", Form::hexadecimal, 0, 0, ""},
    {"subsystem_vendor", Form::hexadecimal, 0, 0, ""},
    {"subsystem_device", Form::hexadecimal, 0, 0, ""},
    {"link_speed"},
    {"link_width", Form::integer, 0, 64, "0"},
}};

inline constexpr std::array<AttributeRule, 7> gpu_rules = {{
    {"dev", Form::integer, -1, most},
    {"sm", Form::integer, 0, 9999},
    {"gcn"},
    {"arch"},
    {"rank", Form::integer, 0, most},
    {"gdr", Form::integer, 0, 255, "0"},
    {"mlopart", Form::integer, -1, 255, ""},
}};

inline constexpr std::array<AttributeRule, 3> link_rules = {{
    {"target"},
    {"count", Form::integer, 0, 4096},
    {"tclass", Form::hexadecimal, 0, 0, ""},
}};

inline constexpr std::array<AttributeRule, 2> c2c_rules = {{
    {"bw", Form::integer, 1, most},
    {"count", Form::integer, 0, 4096},
}};

inline constexpr std::array<AttributeRule, 1> pcilink_rules = {{{"target"}}};

inline constexpr std::array<AttributeRule, 14> net_rules = {{
    {"name"},
    {"dev", Form::integer, 0, most},
    {"latency", Form::number, 0, 1'000'000, "0"},
    {"speed", Form::integer, 1, most, "10000"},
    {"port", Form::integer, 0, most, "0"},
    {"guid"},
    {"maxconn", Form::integer, 1, most, "64"},
    {"gdr", Form::integer, 0, 255, "0"},
    {"coll", Form::integer, 0, 255, "0"},
    {"net", Form::integer, 0, 255, "1"},
    {"gin", Form::integer, 0, 255, "0"},
    {"rma", Form::integer, 0, 255, "0"},
    {"rail", Form::integer, -1, most, ""},
    {"plane", Form::integer, -1, most, ""},
}};

}  // namespace khoro::nccl
