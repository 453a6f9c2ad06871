// SPDX-License-Identifier: Apache-2.0
#pragma once

/// CPython's limited API, as of 3.9: what is built with any Python runs with every later one.
#include <Python.h>
#include <unistd.h>

#include <utility>

#if Py_LIMITED_API < 0x030b0000
// Every CPython exports the buffer protocol as it is here; the limited API names it from 3.11 on.
extern "C" {
struct Py_buffer {
  void* buf;
  PyObject* obj;
  Py_ssize_t len;
  Py_ssize_t itemsize;
  int readonly;
  int ndim;
  char* format;
  Py_ssize_t* shape;
  Py_ssize_t* strides;
  Py_ssize_t* suboffsets;
  void* internal;
};
PyAPI_FUNC(int) PyObject_GetBuffer(PyObject* object, Py_buffer* view, int flags);
PyAPI_FUNC(void) PyBuffer_Release(Py_buffer* view);
PyAPI_FUNC(int) PyObject_CheckBuffer(PyObject* object);
}
#define PyBUF_FORMAT 0x0004
#define PyBUF_STRIDES (0x0010 | 0x0008)
#define PyBUF_RECORDS_RO (PyBUF_STRIDES | PyBUF_FORMAT)
#endif

namespace khoro::python {

/// A reference that is owned. Null where an exception is set.
class Owned {
 public:
  Owned() = default;
  explicit Owned(PyObject* object) noexcept : object_(object) {}
  Owned(Owned&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Owned() { Py_XDECREF(object_); }
  static Owned share(PyObject* object) noexcept {
    Py_XINCREF(object);
    return Owned(object);
  }

  explicit operator bool() const noexcept { return object_ != nullptr; }
  PyObject* get() const noexcept { return object_; }
  PyObject* release() noexcept { return std::exchange(object_, nullptr); }

 private:
  PyObject* object_ = nullptr;
};

/// Takes the interpreter. Where it is ending, Python ends the calling thread instead, by unwinding
/// (before 3.14): frames that promise not to throw would end the process, and others would let go
/// of objects that are not theirs any more. The thread stays here until the process has ended.
template <class Take>
auto take_interpreter(Take take) noexcept {
  try {
    return take();
  } catch (...) {
    for (;;) ::pause();
  }
}

/// Other threads of Python run while this is there.
class Released {
 public:
  Released() noexcept : state_(PyEval_SaveThread()) {}
  ~Released() {
    take_interpreter([this] { PyEval_RestoreThread(state_); });
  }
  Released(const Released&) = delete;
  Released& operator=(const Released&) = delete;

 private:
  PyThreadState* state_;
};

/// The calling thread, whoever started it, may use Python while this is there.
class Acquired {
 public:
  Acquired() noexcept : state_(take_interpreter(PyGILState_Ensure)) {}
  ~Acquired() { PyGILState_Release(state_); }
  Acquired(const Acquired&) = delete;
  Acquired& operator=(const Acquired&) = delete;

 private:
  PyGILState_STATE state_;
};

}  // namespace khoro::python
