// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "python.h"

namespace khoro::python {

/// The type Memory: what an object of Python's says of its memory, by the buffer protocol or else
/// by DLPack, and that memory kept in place as long as it lives. Null where an exception is set.
PyObject* make_memory_type();

}  // namespace khoro::python
