// SPDX-License-Identifier: Apache-2.0
// khoro._core: the C face as it is, for the classes of Python around it. Handles and addresses are
// ints. Each function calls that of the C face while other threads of Python run.
#include "call.h"
#include "completions.h"
#include "init.h"
#include "memory.h"
#include "reductions.h"

namespace khoro::python {

void take_signals() noexcept {
  static thread_local bool taken = false;
  if (taken) return;
  taken = true;
  const auto look = [](void*) {
    const Acquired acquired;
    return PyErr_Occurred() || PyErr_CheckSignals() != 0 ? 1 : 0;
  };
  (void)khoroSetWaitCallback(look, nullptr);
}

namespace {

PyObject* statistics(PyObject*, PyObject* arguments) {
  unsigned long long handle = 0;
  if (!PyArg_ParseTuple(arguments, "K", &handle)) return nullptr;
  khoroStatistics_t now = KHORO_STATISTICS_INITIALIZER;
  const khoroResult_t result = khoroCommQuery(reinterpret_cast<khoroComm_t>(handle), &now);
  if (result != khoroSuccess) return raise(result);
  Owned stripes(PyTuple_New(static_cast<Py_ssize_t>(now.stripes)));
  for (std::size_t i = 0; stripes && i < now.stripes; ++i) {
    PyObject* const bytes = PyLong_FromUnsignedLongLong(now.stripeBytes[i]);
    if (!bytes) return nullptr;
    PyTuple_SetItem(stripes.get(), static_cast<Py_ssize_t>(i), bytes);
  }
  if (!stripes) return nullptr;
  const auto number = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
  return Py_BuildValue("(KKKsNKKKKK)", number(now.collectives), number(now.bytesHeld),
                       number(now.bytesSent), now.transports, stripes.release(),
                       number(now.recordBytes), number(now.channelBytes), number(now.partialBytes),
                       number(now.keptBytes), number(now.programBytes));
}

PyObject* last_error(PyObject*, PyObject* arguments) {
  unsigned long long handle = 0;
  if (!PyArg_ParseTuple(arguments, "K", &handle)) return nullptr;
  return PyUnicode_FromString(khoroGetLastError(reinterpret_cast<khoroComm_t>(handle)));
}

template <auto function>
PyMethodDef method(const char* name) {
  return {name, call<function>, METH_VARARGS, nullptr};
}

PyMethodDef functions[] = {{"unique_id", unique_id, METH_NOARGS, nullptr},
                           {"init_rank", init_rank, METH_VARARGS, nullptr},
                           {"init_world", init_world, METH_VARARGS, nullptr},
                           {"init_over", init_over, METH_VARARGS, nullptr},
                           {"init_all_host", init_all_host, METH_VARARGS, nullptr},
                           {"split", split, METH_VARARGS, nullptr},
                           {"statistics", statistics, METH_VARARGS, nullptr},
                           {"last_error", last_error, METH_VARARGS, nullptr},
                           {"make_reduction", make_reduction, METH_VARARGS, nullptr},
                           {"watch", watch, METH_VARARGS, nullptr},
                           {"next_completed", next_completed, METH_NOARGS, nullptr},
                           {"event_wait", event_wait, METH_VARARGS, nullptr},
                           method<khoroGetVersion>("version"),
                           method<khoroCommDestroy>("destroy"),
                           method<khoroCommAbort>("abort"),
                           method<khoroCommRevoke>("revoke"),
                           method<khoroCommGetAsyncError>("async_error"),
                           method<khoroCommCount>("count"),
                           method<khoroCommUserRank>("user_rank"),
                           method<khoroCommSetDeadline>("set_deadline"),
                           method<khoroRedOpCreatePreMulSum>("make_scaled_sum"),
                           method<khoroRedOpDestroy>("destroy_reduction"),
                           method<khoroAllReduce>("allreduce"),
                           method<khoroBroadcast>("broadcast"),
                           method<khoroAllGather>("allgather"),
                           method<khoroReduceScatter>("reduce_scatter"),
                           method<khoroReduce>("reduce"),
                           method<khoroGather>("gather"),
                           method<khoroScatter>("scatter"),
                           method<khoroAlltoAll>("alltoall"),
                           method<khoroAllGatherV>("allgatherv"),
                           method<khoroReduceScatterV>("reduce_scatterv"),
                           method<khoroGatherV>("gatherv"),
                           method<khoroScatterV>("scatterv"),
                           method<khoroAlltoAllV>("alltoallv"),
                           method<khoroBarrier>("barrier"),
                           method<khoroSendTag>("send"),
                           method<khoroRecvTag>("recv"),
                           method<khoroGroupStart>("group_start"),
                           method<khoroGroupEnd>("group_end"),
                           method<khoroPlanCreate>("plan_create"),
                           method<khoroPlanDestroy>("plan_destroy"),
                           method<khoroStreamCreate>("stream_create"),
                           method<khoroStreamDestroy>("stream_destroy"),
                           method<khoroEventCreate>("event_create"),
                           method<khoroEventDestroy>("event_destroy"),
                           method<khoroEventRecord>("event_record"),
                           method<khoroEventQuery>("event_query"),
                           method<khoroEventDescriptor>("event_descriptor"),
                           method<khoroSetTraceFile>("set_trace_file"),
                           method<khoroMemAlloc>("mem_alloc"),
                           method<khoroMemFree>("mem_free"),
                           {nullptr, nullptr, 0, nullptr}};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "khoro._core",
                          "The C face of Khoro, for the package khoro.",
                          -1,
                          functions,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace
}  // namespace khoro::python

PyMODINIT_FUNC PyInit__core() {
  using namespace khoro::python;
  Owned module(PyModule_Create(&definition));
  if (!module) return nullptr;
  PyObject* const memory = make_memory_type();
  if (!memory || PyModule_AddObject(module.get(), "Memory", memory) != 0) return nullptr;
  return module.release();
}
