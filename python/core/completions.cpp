// SPDX-License-Identifier: Apache-2.0
#include "completions.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <utility>

#include "errors.h"
#include "khoro/khoro.h"

namespace khoro::python {
namespace {

struct Completed {
  unsigned long long key = 0;
  khoroResult_t result = khoroSuccess;
  std::string words;
};

struct Queue {
  std::mutex mutex;
  std::condition_variable filled;
  std::deque<Completed> all;
};

/// Never destroyed: events may complete until the process has ended.
Queue& queue() {
  static auto* const queue = new Queue;
  return *queue;
}

void complete(void* key, khoroResult_t result) {
  Completed completed{reinterpret_cast<unsigned long long>(key), result, {}};
  if (result != khoroSuccess) completed.words = khoroGetLastError(nullptr);
  {
    const std::lock_guard lock(queue().mutex);
    queue().all.push_back(std::move(completed));
  }
  queue().filled.notify_one();
}

}  // namespace

PyObject* watch(PyObject*, PyObject* arguments) {
  unsigned long long event = 0, key = 0;
  if (!PyArg_ParseTuple(arguments, "KK", &event, &key)) return nullptr;
  khoroResult_t result = khoroSuccess;
  {
    const Released released;
    result = khoroEventCallback(reinterpret_cast<khoroEvent_t>(event), complete,
                                reinterpret_cast<void*>(key));
  }
  if (result != khoroSuccess) return raise(result);
  Py_RETURN_NONE;
}

PyObject* next_completed(PyObject*, PyObject*) {
  Completed first;
  {
    const Released released;
    std::unique_lock lock(queue().mutex);
    queue().filled.wait(lock, [] { return !queue().all.empty(); });
    first = std::move(queue().all.front());
    queue().all.pop_front();
  }
  return Py_BuildValue("(Kis)", first.key, static_cast<int>(first.result), first.words.c_str());
}

PyObject* event_wait(PyObject*, PyObject* arguments) {
  constexpr long long slice = 200;
  unsigned long long event = 0;
  long long milliseconds = 0;
  if (!PyArg_ParseTuple(arguments, "KL", &event, &milliseconds)) return nullptr;
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  for (;;) {
    long long left = slice;
    if (milliseconds >= 0) {
      const auto spent =
          std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin).count();
      left = std::clamp<long long>(milliseconds - spent, 0, slice);
    }
    khoroResult_t result = khoroSuccess;
    {
      const Released released;
      result = khoroEventWait(reinterpret_cast<khoroEvent_t>(event), left);
    }
    if (result == khoroSuccess) Py_RETURN_TRUE;
    if (result != khoroInProgress) return raise(result);
    if (PyErr_CheckSignals() != 0) return nullptr;
    if (milliseconds >= 0 && left < slice) Py_RETURN_FALSE;
  }
}

}  // namespace khoro::python
