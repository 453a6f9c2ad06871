// SPDX-License-Identifier: Apache-2.0
// Reductions that a caller makes.
#include <fmt/format.h>

#include <cstring>
#include <string_view>
#include <utility>

#include "api/submit.h"
#include "base/error.h"
#include "base/hash.h"

using khoro::Code;
using khoro::Error;
using khoro::guard;
using khoro::OwnReduction;

namespace {

khoro::Communicator& usable(khoro::Communicator& communicator) {
  if (communicator.stopped()) communicator.throw_cause();
  return communicator;
}

/// A function of the caller's, which must not call Khoro.
auto guarded(khoroReduceFn function, void* context) {
  return [function, context](const void* in, void* inout, std::size_t count, khoro::Dtype dtype) {
    const int depth = std::exchange(khoro::group_depth, khoro::in_callback);
    function(context, in, inout, count, static_cast<khoroDataType_t>(dtype));
    khoro::group_depth = depth;
  };
}

}  // namespace

khoroResult_t khoroRedOpCreatePreMulSum(khoroRedOp_t* op, void* scalar, khoroDataType_t datatype,
                                        khoroScalarResidence_t residence, khoroComm_t comm) {
  return guard([&] {
    khoro::check_out(op, "op");
    const auto pin = khoro::handles().pin(comm);
    khoro::Communicator& communicator = usable(pin.open());
    const khoro::DtypeRow* row = khoro::find(khoro::dtype(datatype));
    if (!row)
      throw Error(Code::invalid_argument, "that is no data type; use one of khoroDataType_t");
    if (!scalar)
      throw Error(Code::invalid_argument, "the scalar is NULL; pass the address of the factor");
    if (residence != khoroScalarDevice && residence != khoroScalarHostImmediate)
      throw Error(Code::invalid_argument,
                  fmt::format("{} is no residence; use one of khoroScalarResidence_t",
                              static_cast<unsigned>(residence)));
    OwnReduction reduction;
    reduction.dtype = row->dtype;
    if (residence == khoroScalarHostImmediate)
      std::memcpy(reduction.factor.data(), scalar, row->bytes);
    else
      reduction.scalar = scalar;
    *op = static_cast<khoroRedOp_t>(communicator.own_reductions().add(std::move(reduction)));
  });
}

khoroResult_t khoroRedOpCreateUser(khoroRedOp_t* op, const char* name, khoroReduceFn function,
                                   void* context, int commutative, khoroComm_t comm) {
  return guard([&] {
    khoro::check_out(op, "op");
    const auto pin = khoro::handles().pin(comm);
    khoro::Communicator& communicator = usable(pin.open());
    if (!name || !*name)
      throw Error(Code::invalid_argument,
                  "the reduction has no name; pass one that all ranks give the same function");
    if (!function)
      throw Error(Code::invalid_argument, "the function is NULL; pass the one that reduces");
    OwnReduction reduction;
    reduction.kind = khoro::Reduction::user;
    reduction.function = guarded(function, context);
    reduction.commutative = commutative != 0;
    reduction.name_hash = khoro::combine(khoro::hash_text(name), reduction.commutative);
    *op = static_cast<khoroRedOp_t>(communicator.own_reductions().add(std::move(reduction)));
  });
}

khoroResult_t khoroRedOpDestroy(khoroRedOp_t op, khoroComm_t comm) {
  return guard([&] {
    const auto pin = khoro::handles().pin(comm);
    if (!pin.made().own_reductions().remove(static_cast<std::uint32_t>(op)))
      throw Error(
          Code::invalid_argument,
          fmt::format("{} is no reduction that was made for this communicator; destroy each "
                      "once, and none that khoro.h names",
                      static_cast<unsigned>(op)));
  });
}
