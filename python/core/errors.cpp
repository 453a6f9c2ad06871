// SPDX-License-Identifier: Apache-2.0
#include "errors.h"

namespace khoro::python {

PyObject* raise(khoroResult_t result) { return raise(result, khoroGetLastError(nullptr)); }

PyObject* raise(khoroResult_t result, const char* words) {
  if (PyErr_Occurred()) return nullptr;
  const Owned errors(PyImport_ImportModule("khoro._errors"));
  if (!errors) return nullptr;
  const Owned error(
      PyObject_CallMethod(errors.get(), "of_result", "is", static_cast<int>(result), words));
  if (error) PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.get())), error.get());
  return nullptr;
}

}  // namespace khoro::python
