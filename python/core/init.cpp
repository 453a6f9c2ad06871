// SPDX-License-Identifier: Apache-2.0
#include "init.h"

#include <cstring>
#include <vector>

#include "errors.h"
#include "khoro/khoro.h"

namespace khoro::python {
namespace {

khoroConfig_t config_of(const char* settings) {
  khoroConfig_t config = KHORO_CONFIG_INITIALIZER;
  config.blocking = 0;
  if (settings) config.settings = settings;
  return config;
}

PyObject* handle_of(khoroComm_t comm, khoroResult_t result) {
  if (result != khoroSuccess && result != khoroInProgress) return raise(result);
  return PyLong_FromVoidPtr(comm);
}

/// Calls `exchange` in the name of khoroCommInitOver. What it raises is raised by that.
khoroResult_t exchange_in_python(void* exchange, const void* mine, void* all, std::size_t bytes) {
  const Acquired acquired;
  const auto& [function, ranks] = *static_cast<std::pair<PyObject*, int>*>(exchange);
  const Owned gathered(PyObject_CallFunction(function, "y#", mine, static_cast<Py_ssize_t>(bytes)));
  if (!gathered) return khoroSystemError;
  char* data = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(gathered.get(), &data, &size) != 0) return khoroSystemError;
  const auto expected = static_cast<Py_ssize_t>(bytes) * ranks;
  if (size != expected) {
    PyErr_Format(PyExc_ValueError, "the exchange returned %zd bytes, not %zd for each of %d ranks",
                 size, static_cast<Py_ssize_t>(bytes), ranks);
    return khoroSystemError;
  }
  std::memcpy(all, data, static_cast<std::size_t>(size));
  return khoroSuccess;
}

}  // namespace

PyObject* unique_id(PyObject*, PyObject*) {
  khoroUniqueId id;
  const khoroResult_t result = khoroGetUniqueId(&id);
  if (result != khoroSuccess) return raise(result);
  return PyBytes_FromStringAndSize(id.internal, sizeof id.internal);
}

PyObject* init_rank(PyObject*, PyObject* arguments) {
  int ranks = 0, rank = 0;
  const char *bytes = nullptr, *settings = nullptr;
  Py_ssize_t size = 0;
  if (!PyArg_ParseTuple(arguments, "iy#iz", &ranks, &bytes, &size, &rank, &settings))
    return nullptr;
  khoroUniqueId id;
  if (size != sizeof id.internal)
    return raise(khoroInvalidArgument, "an id has 128 bytes, as unique_id() returns them");
  std::memcpy(id.internal, bytes, sizeof id.internal);
  const khoroConfig_t config = config_of(settings);
  khoroComm_t comm = nullptr;
  const khoroResult_t result = khoroCommInitRankConfig(&comm, ranks, id, rank, &config);
  return handle_of(comm, result);
}

PyObject* init_world(PyObject*, PyObject* arguments) {
  const char* settings = nullptr;
  if (!PyArg_ParseTuple(arguments, "z", &settings)) return nullptr;
  const khoroConfig_t config = config_of(settings);
  khoroComm_t comm = nullptr;
  const khoroResult_t result = khoroCommInitWorldConfig(&comm, &config);
  return handle_of(comm, result);
}

PyObject* init_over(PyObject*, PyObject* arguments) {
  int ranks = 0, rank = 0;
  PyObject* function = nullptr;
  const char* settings = nullptr;
  if (!PyArg_ParseTuple(arguments, "iiOz", &ranks, &rank, &function, &settings)) return nullptr;
  const khoroConfig_t config = config_of(settings);
  std::pair exchange{function, ranks};
  khoroComm_t comm = nullptr;
  khoroResult_t result = khoroSuccess;
  {
    const Released released;
    result = khoroCommInitOver(&comm, ranks, rank, exchange_in_python, &exchange, &config);
  }
  return handle_of(comm, result);
}

PyObject* init_all_host(PyObject*, PyObject* arguments) {
  int ranks = 0;
  if (!PyArg_ParseTuple(arguments, "i", &ranks)) return nullptr;
  std::vector<khoroComm_t> comms(ranks > 0 ? static_cast<std::size_t>(ranks) : 1);
  const khoroResult_t result = khoroCommInitAllHost(comms.data(), ranks);
  if (result != khoroSuccess) return raise(result);
  Owned list(PyList_New(ranks));
  for (Py_ssize_t i = 0; list && i < ranks; ++i) {
    PyObject* const handle = PyLong_FromVoidPtr(comms[static_cast<std::size_t>(i)]);
    if (!handle) return nullptr;
    PyList_SetItem(list.get(), i, handle);
  }
  return list.release();
}

PyObject* split(PyObject*, PyObject* arguments) {
  unsigned long long handle = 0;
  int color = 0, key = 0, inherits = 0;
  if (!PyArg_ParseTuple(arguments, "Kiip", &handle, &color, &key, &inherits)) return nullptr;
  const khoroConfig_t config = config_of(nullptr);
  khoroComm_t made = nullptr;
  khoroResult_t result = khoroSuccess;
  {
    const Released released;
    result = khoroCommSplit(reinterpret_cast<khoroComm_t>(handle), color, key, &made,
                            inherits ? nullptr : &config);
  }
  return handle_of(made, result);
}

}  // namespace khoro::python
