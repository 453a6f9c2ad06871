// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "python.h"

namespace khoro::python {

/// (handle, name, function, commutative) -> (number, keeper). The function is called with the
/// addresses of both operands, the second of which gets the result, their count and their type; it
/// must not raise. It is there as long as the keeper.
PyObject* make_reduction(PyObject*, PyObject* arguments);

}  // namespace khoro::python
