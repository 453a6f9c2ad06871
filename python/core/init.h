// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "python.h"

namespace khoro::python {

// What makes communicators. None of them blocks but in the exchange: what they return is in
// progress.

/// () -> bytes
PyObject* unique_id(PyObject*, PyObject* arguments);
/// (ranks, id, rank, settings) -> handle
PyObject* init_rank(PyObject*, PyObject* arguments);
/// (settings) -> handle
PyObject* init_world(PyObject*, PyObject* arguments);
/// (ranks, rank, exchange, settings) -> handle; exchange takes the bytes of this rank, and returns
/// those of all in the order of ranks.
PyObject* init_over(PyObject*, PyObject* arguments);
/// (ranks) -> list of handles, made at once
PyObject* init_all_host(PyObject*, PyObject* arguments);
/// (handle, color, key, inherits) -> handle, or 0 without a color. inherits: the settings of the
/// handle; it was not made by init_all_host then.
PyObject* split(PyObject*, PyObject* arguments);

}  // namespace khoro::python
