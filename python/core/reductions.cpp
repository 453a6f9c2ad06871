// SPDX-License-Identifier: Apache-2.0
#include "reductions.h"

#include <cstdint>

#include "errors.h"
#include "khoro/khoro.h"

namespace khoro::python {
namespace {

void reduce_in_python(void* function, const void* in, void* inout, std::size_t count,
                      khoroDataType_t dtype) {
  const Acquired acquired;
  const Owned none(PyObject_CallFunction(
      static_cast<PyObject*>(function), "KKni",
      static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(in)),
      static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(inout)),
      static_cast<Py_ssize_t>(count), static_cast<int>(dtype)));
  if (!none) PyErr_WriteUnraisable(static_cast<PyObject*>(function));
}

void let_go(PyObject* keeper) {
  Py_DECREF(static_cast<PyObject*>(PyCapsule_GetPointer(keeper, nullptr)));
}

}  // namespace

PyObject* make_reduction(PyObject*, PyObject* arguments) {
  unsigned long long handle = 0;
  const char* name = nullptr;
  PyObject* function = nullptr;
  int commutative = 0;
  if (!PyArg_ParseTuple(arguments, "KsOp", &handle, &name, &function, &commutative)) return nullptr;
  khoroRedOp_t number{};
  const khoroResult_t result =
      khoroRedOpCreateUser(&number, name, reduce_in_python, function, commutative,
                           reinterpret_cast<khoroComm_t>(handle));
  if (result != khoroSuccess) return raise(result);
  Owned keeper(PyCapsule_New(function, nullptr, let_go));
  if (!keeper) return nullptr;
  Py_INCREF(function);
  return Py_BuildValue("(kN)", static_cast<unsigned long>(number), keeper.release());
}

}  // namespace khoro::python
