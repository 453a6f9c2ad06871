// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <khoro/khoro.h>

#include <cstddef>

#include "support/case.h"

namespace khoro::test {

/// A `khoroReduceFn` whose context is the function of bits that it applies.
inline void reduce_by(void* context, const void* in, void* inout, std::size_t count,
                      khoroDataType_t type) {
  reduce_bits(*static_cast<BitFunction*>(context), static_cast<Dtype>(type), in, inout, count);
}

/// The reduction of a case as one rank's call names it. If it is one to make, it is made for that
/// call alone and ends with this: calls that are queued or written down use it all the same.
class CaseReduction {
 public:
  CaseReduction(const Case& what, int rank, khoroComm_t comm)
      : comm_(comm), op_(static_cast<khoroRedOp_t>(what.reduction)) {
    if (what.reduction == Reduction::premul) make_sum(what, rank);
    if (what.reduction == Reduction::user) make_function(what);
  }
  ~CaseReduction() {
    if (made_) (void)khoroRedOpDestroy(op_, comm_);
  }
  CaseReduction(const CaseReduction&) = delete;
  CaseReduction& operator=(const CaseReduction&) = delete;

  /// Of making it.
  khoroResult_t result() const { return result_; }
  khoroRedOp_t op() const { return op_; }

 private:
  /// When the factor is not to be read, another one is there.
  void make_sum(const Case& what, int rank) {
    const Scalar factor = what.factor(rank);
    Scalar other = factor;
    for (std::byte& byte : other.bytes) byte = ~byte;
    scalar_ = what.late_factor ? other : factor;
    result_ = khoroRedOpCreatePreMulSum(
        &op_, scalar_.bytes.data(), static_cast<khoroDataType_t>(what.dtype),
        what.late_factor ? khoroScalarDevice : khoroScalarHostImmediate, comm_);
    made_ = result_ == khoroSuccess;
    scalar_ = what.late_factor ? factor : other;
  }

  void make_function(const Case& what) {
    // Calls borrow them.
    static BitFunction mingles = mingle, appends = append;
    result_ = khoroRedOpCreateUser(&op_, what.commutative ? "mingle" : "append", reduce_by,
                                   what.commutative ? &mingles : &appends, what.commutative, comm_);
    made_ = result_ == khoroSuccess;
  }

  khoroComm_t comm_;
  khoroRedOp_t op_;
  khoroResult_t result_ = khoroSuccess;
  bool made_ = false;
  Scalar scalar_;
};

}  // namespace khoro::test
