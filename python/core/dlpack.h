// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace khoro::python::dlpack {

// As the DLPack standard lays them out, versions 0 and 1.

enum DeviceType : std::int32_t { cpu = 1, cuda_host = 3 };

enum TypeCode : std::uint8_t {
  signed_integer = 0,
  unsigned_integer = 1,
  ieee_float = 2,
  brain_float = 4,
  complex_number = 5,
  boolean = 6,
  float8_e4m3fn = 10,
  float8_e5m2 = 12,
};

struct Type {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};

struct Tensor {
  void* data;
  std::int32_t device_type;
  std::int32_t device_number;
  std::int32_t dimensions;
  Type type;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements; null: contiguous
  std::uint64_t offset;   // in bytes
};

struct Managed {
  Tensor tensor;
  void* context;
  void (*release)(Managed* self);
};

struct Versioned {
  std::uint32_t major, minor;
  void* context;
  void (*release)(Versioned* self);
  std::uint64_t flags;
  Tensor tensor;
};
inline constexpr std::uint64_t read_only = 1;

}  // namespace khoro::python::dlpack
