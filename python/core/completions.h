// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "python.h"

namespace khoro::python {

// Events that have completed, for a thread of Python's to take. What the library's own thread does
// for it needs no Python, so neither waits for the other.

/// (event, key) -> None: next_completed() will return the key once the event is complete.
PyObject* watch(PyObject*, PyObject* arguments);
/// () -> (key, result, words) of what has completed next; blocks until there is some.
PyObject* next_completed(PyObject*, PyObject* arguments);
/// (event, milliseconds) -> whether it is complete; negative: waits for ever. Takes signals.
PyObject* event_wait(PyObject*, PyObject* arguments);

}  // namespace khoro::python
