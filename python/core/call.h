// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "errors.h"
#include "khoro/khoro.h"
#include "python.h"

namespace khoro::python {

/// Has the calling thread take signals while it waits in calls, so that Ctrl-C ends them.
void take_signals() noexcept;

/// An argument of the C face as Python gives it: handles, addresses and numbers are ints, None is
/// NULL, an array of counts is a sequence of ints. read() is false where an exception is set.
template <class T, class = void>
struct Argument;

template <class T>
struct Argument<T, std::enable_if_t<std::is_integral_v<T> && std::is_signed_v<T>>> {
  static constexpr bool given = true;
  bool read(PyObject* object) {
    const long long wide = PyLong_AsLongLong(object);
    if (wide == -1 && PyErr_Occurred()) return false;
    value = static_cast<T>(wide);
    if (value == wide) return true;
    PyErr_SetString(PyExc_OverflowError, "an int is too large for the C face");
    return false;
  }
  T pass() noexcept { return value; }
  T value = 0;
};

template <class T>
struct Argument<
    T, std::enable_if_t<(std::is_integral_v<T> && std::is_unsigned_v<T>) || std::is_enum_v<T>>> {
  static constexpr bool given = true;
  bool read(PyObject* object) {
    // An int, or what can be one, as the integers of NumPy.
    const Owned number(PyNumber_Index(object));
    if (!number) return false;
    const unsigned long long wide = PyLong_AsUnsignedLongLong(number.get());
    if (wide == static_cast<unsigned long long>(-1) && PyErr_Occurred()) return false;
    value = static_cast<T>(wide);
    if (static_cast<unsigned long long>(value) == wide) return true;
    PyErr_SetString(PyExc_OverflowError, "an int is too large for the C face");
    return false;
  }
  T pass() noexcept { return value; }
  T value{};
};

/// What a call writes when it succeeds: it is not given, but returned.
template <class T>
inline constexpr bool is_output =
    std::is_pointer_v<T> || std::is_arithmetic_v<T> || std::is_enum_v<T>;

template <class T>
struct Argument<T*, std::enable_if_t<is_output<T> && !std::is_const_v<T>>> {
  static constexpr bool given = false;
  T* pass() noexcept { return &value; }
  PyObject* result() const {
    if constexpr (std::is_pointer_v<T>)
      return PyLong_FromVoidPtr(value);
    else
      return PyLong_FromLongLong(static_cast<long long>(value));
  }
  T value{};
};

/// Addresses, and handles.
template <class T>
struct Argument<T*, std::enable_if_t<!is_output<T>>> {
  static constexpr bool given = true;
  bool read(PyObject* object) {
    if (object == Py_None) return true;
    value = static_cast<T*>(PyLong_AsVoidPtr(object));
    return value || !PyErr_Occurred();
  }
  T* pass() noexcept { return value; }
  T* value = nullptr;
};

template <>
struct Argument<const std::size_t*> {
  static constexpr bool given = true;
  bool read(PyObject* object) {
    if (object == Py_None) return true;
    const Owned all(PySequence_Tuple(object));
    if (!all) return false;
    values.resize(static_cast<std::size_t>(PyTuple_Size(all.get())));
    for (std::size_t i = 0; i < values.size(); ++i) {
      Argument<std::size_t> value;
      if (!value.read(PyTuple_GetItem(all.get(), static_cast<Py_ssize_t>(i)))) return false;
      values[i] = value.value;
    }
    return true;
  }
  const std::size_t* pass() noexcept { return values.data(); }
  std::vector<std::size_t> values;
};

template <>
struct Argument<const char*> {
  static constexpr bool given = true;
  bool read(PyObject* object) {
    if (object == Py_None) return true;
    bytes = Owned(PyUnicode_AsUTF8String(object));
    return static_cast<bool>(bytes);
  }
  const char* pass() noexcept { return bytes ? PyBytes_AsString(bytes.get()) : nullptr; }
  Owned bytes;
};

/// Calls a function of the C face while other threads of Python run. What it writes is returned; if
/// it writes nothing, whether it has finished: False for khoroInProgress.
template <auto function, class... Parameters>
PyObject* call_with(khoroResult_t (*)(Parameters...), PyObject* given) {
  constexpr std::size_t expected = (std::size_t{0} + ... + Argument<Parameters>::given);
  if (PyTuple_Size(given) != static_cast<Py_ssize_t>(expected)) {
    PyErr_Format(PyExc_TypeError, "%zu arguments, not %zd", expected, PyTuple_Size(given));
    return nullptr;
  }
  std::tuple<Argument<Parameters>...> arguments;
  Py_ssize_t next = 0;
  const auto read = [&](auto& argument) {
    if constexpr (std::remove_reference_t<decltype(argument)>::given)
      return argument.read(PyTuple_GetItem(given, next++));
    else
      return true;
  };
  return std::apply(
      [&](auto&... argument) -> PyObject* {
        if (!(true && ... && read(argument))) return nullptr;
        khoroResult_t result = khoroSuccess;
        take_signals();
        {
          const Released released;
          result = function(argument.pass()...);
        }
        if (result != khoroSuccess && result != khoroInProgress) return raise(result);
        if constexpr (sizeof...(Parameters) == expected) {
          return PyBool_FromLong(result == khoroSuccess);
        } else {
          PyObject* written = nullptr;
          const auto keep = [&](const auto& each) {
            if constexpr (!std::remove_reference_t<decltype(each)>::given) written = each.result();
          };
          (keep(argument), ...);
          return written;
        }
      },
      arguments);
}

template <auto function>
PyObject* call(PyObject*, PyObject* given) {
  return call_with<function>(function, given);
}

}  // namespace khoro::python
