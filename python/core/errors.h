// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "khoro/khoro.h"
#include "python.h"

namespace khoro::python {

/// Sets the exception of a result, with what the library said of it on this thread; one that is set
/// already, by a signal say, comes first. Always null, for a function to return.
PyObject* raise(khoroResult_t result);

/// The same with words of its own.
PyObject* raise(khoroResult_t result, const char* words);

}  // namespace khoro::python
