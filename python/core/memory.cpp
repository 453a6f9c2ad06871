// SPDX-License-Identifier: Apache-2.0
#include "memory.h"

#include <structmember.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>

#include "dlpack.h"
#include "errors.h"

namespace khoro::python {
namespace {

constexpr int no_dtype = -1;

struct Memory {
  PyObject_HEAD Py_buffer view;
  dlpack::Managed* managed;
  dlpack::Versioned* versioned;
  PyObject* shape;
  PyObject* format;
  unsigned long long address;
  Py_ssize_t count;
  Py_ssize_t itemsize;
  int dtype;
  char contiguous;
  char readonly;
};

PyObject* refuse(const std::string& words) { return raise(khoroInvalidArgument, words.c_str()); }

int integer(bool is_signed, Py_ssize_t size) {
  switch (size) {
    case 1:
      return is_signed ? khoroInt8 : khoroUint8;
    case 4:
      return is_signed ? khoroInt32 : khoroUint32;
    case 8:
      return is_signed ? khoroInt64 : khoroUint64;
    default:
      return no_dtype;
  }
}

int floating(Py_ssize_t size) {
  switch (size) {
    case 2:
      return khoroFloat16;
    case 4:
      return khoroFloat32;
    case 8:
      return khoroFloat64;
    default:
      return no_dtype;
  }
}

/// Of a buffer, whose format is in the words of the struct module.
int dtype_of(const char* format, Py_ssize_t itemsize) {
  if (*format == '@' || *format == '=' || *format == '<') ++format;
  if (format[0] == 0 || format[1] != 0) return no_dtype;
  if (std::strchr("bhilqn", *format)) return integer(true, itemsize);
  if (std::strchr("BHILQN", *format)) return integer(false, itemsize);
  if (std::strchr("efd", *format)) return floating(itemsize);
  return no_dtype;
}

int dtype_of(const dlpack::Type& type) {
  const Py_ssize_t size = type.bits / 8;
  if (type.lanes != 1) return no_dtype;
  switch (type.code) {
    case dlpack::signed_integer:
      return integer(true, size);
    case dlpack::unsigned_integer:
      return integer(false, size);
    case dlpack::ieee_float:
      return floating(size);
    case dlpack::brain_float:
      return size == 2 ? int{khoroBfloat16} : no_dtype;
    case dlpack::float8_e4m3fn:
      return khoroFloat8e4m3;
    case dlpack::float8_e5m2:
      return khoroFloat8e5m2;
    default:
      return no_dtype;
  }
}

/// Takes the shape over and finds out whether elements lie in a row. `strides`, in units of which
/// an element has `unit`; null: they do.
template <class Size>
bool take_shape(Memory& self, int dimensions, const Size* shape, const Size* strides, Size unit) {
  self.shape = PyTuple_New(dimensions);
  if (!self.shape) return false;
  self.count = 1;
  self.contiguous = 1;
  Size row = unit;
  for (int d = dimensions - 1; d >= 0; --d) {
    PyObject* const length = PyLong_FromLongLong(shape[d]);
    if (!length) return false;
    PyTuple_SetItem(self.shape, d, length);
    // A dimension of one element has no neighbours to be apart from.
    if (strides && shape[d] != 1 && strides[d] != row) self.contiguous = 0;
    row *= shape[d];
    self.count *= static_cast<Py_ssize_t>(shape[d]);
  }
  if (self.count == 0) self.contiguous = 1;
  return true;
}

/// Of a buffer's format, in which the names of fields stand between colons.
bool holds_objects(const char* format) {
  bool named = false;
  for (; *format; ++format) {
    named ^= *format == ':';
    if (!named && *format == 'O') return true;
  }
  return false;
}

bool take_buffer(Memory& self, PyObject* object) {
  if (PyObject_GetBuffer(object, &self.view, PyBUF_RECORDS_RO) != 0) {
    self.view.obj = nullptr;
    return false;
  }
  const Py_buffer& view = self.view;
  const char* const format = view.format ? view.format : "B";
  if (holds_objects(format)) {
    refuse("an array of Python objects: only numbers can be passed to other processes");
    return false;
  }
  const bool one = format[0] != 0 && format[1] != 0 && format[2] == 0;
  if (one && view.itemsize > 1 && (*format == '>' || *format == '!')) {
    refuse(
        "the array is big-endian and this machine is not; convert it to native byte order first");
    return false;
  }
  static_assert(std::endian::native == std::endian::little);
  self.address = reinterpret_cast<std::uintptr_t>(view.buf);
  self.itemsize = view.itemsize;
  self.dtype = dtype_of(format, view.itemsize);
  self.readonly = view.readonly != 0;
  self.format = PyUnicode_FromString(format);
  if (!self.format) return false;
  if (view.ndim > 0 && !view.shape) {
    const Py_ssize_t length = view.len / view.itemsize;
    return take_shape<Py_ssize_t>(self, 1, &length, nullptr, view.itemsize);
  }
  return take_shape(self, view.ndim, view.shape, view.strides, view.itemsize);
}

bool take_tensor(Memory& self, const dlpack::Tensor& tensor) {
  if (tensor.device_type != dlpack::cpu && tensor.device_type != dlpack::cuda_host) {
    refuse("the array is not in the memory of the processor (DLPack device type " +
           std::to_string(tensor.device_type) + "); copy it there first");
    return false;
  }
  self.address = reinterpret_cast<std::uintptr_t>(tensor.data) + tensor.offset;
  self.itemsize = tensor.type.bits * tensor.type.lanes / 8;
  self.dtype = dtype_of(tensor.type);
  self.format =
      PyUnicode_FromFormat("DLPack type %d of %d bits", tensor.type.code, tensor.type.bits);
  if (!self.format) return false;
  return take_shape<std::int64_t>(self, tensor.dimensions, tensor.shape, tensor.strides, 1);
}

/// A capsule may be used once, which its new name says.
bool take_capsule(Memory& self, PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
    auto* const versioned =
        static_cast<dlpack::Versioned*>(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
    if (versioned->major > 1) {
      refuse("the array speaks a version of DLPack that is not known here");
      return false;
    }
    PyCapsule_SetName(capsule, "used_dltensor_versioned");
    self.versioned = versioned;
    self.readonly = (versioned->flags & dlpack::read_only) != 0;
    return take_tensor(self, versioned->tensor);
  }
  auto* const managed = static_cast<dlpack::Managed*>(PyCapsule_GetPointer(capsule, "dltensor"));
  if (!managed) return false;
  PyCapsule_SetName(capsule, "used_dltensor");
  self.managed = managed;
  return take_tensor(self, managed->tensor);
}

bool take_dlpack(Memory& self, PyObject* object) {
  const Owned method(PyObject_GetAttrString(object, "__dlpack__"));
  if (!method) return false;
  const Owned none(PyTuple_New(0));
  const Owned newest(Py_BuildValue("{s(ii)}", "max_version", 1, 0));
  if (!none || !newest) return false;
  Owned capsule(PyObject_Call(method.get(), none.get(), newest.get()));
  if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {  // it is older than versions
    PyErr_Clear();
    capsule = Owned(PyObject_CallObject(method.get(), nullptr));
  }
  return capsule && take_capsule(self, capsule.get());
}

PyObject* make(PyTypeObject* type, PyObject* arguments, PyObject* named) {
  PyObject* object = nullptr;
  int dtype = no_dtype;
  if (named || !PyArg_ParseTuple(arguments, "O|i:Memory", &object, &dtype)) {
    if (named) PyErr_SetString(PyExc_TypeError, "Memory takes no named arguments");
    return nullptr;
  }
  const auto allocate = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc));
  Owned made(allocate(type, 0));
  if (!made) return nullptr;
  auto& self = *reinterpret_cast<Memory*>(made.get());
  const bool taken =
      PyObject_CheckBuffer(object) ? take_buffer(self, object) : take_dlpack(self, object);
  if (dtype != no_dtype) self.dtype = dtype;
  if (taken) return made.release();
  if (PyErr_ExceptionMatches(PyExc_AttributeError)) {
    PyErr_Clear();
    raise(khoroInvalidArgument,
          "no array: pass what has the buffer protocol, as NumPy's arrays do, or DLPack's");
  }
  return nullptr;
}

void free_memory(PyObject* object) {
  auto& self = *reinterpret_cast<Memory*>(object);
  PyTypeObject* const type = Py_TYPE(object);
  if (self.view.obj) PyBuffer_Release(&self.view);
  if (self.managed && self.managed->release) self.managed->release(self.managed);
  if (self.versioned && self.versioned->release) self.versioned->release(self.versioned);
  Py_XDECREF(self.shape);
  Py_XDECREF(self.format);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

}  // namespace

PyObject* make_memory_type() {
  static PyMemberDef members[] = {
      {"address", T_ULONGLONG, offsetof(Memory, address), READONLY, nullptr},
      {"count", T_PYSSIZET, offsetof(Memory, count), READONLY, nullptr},
      {"itemsize", T_PYSSIZET, offsetof(Memory, itemsize), READONLY, nullptr},
      {"dtype", T_INT, offsetof(Memory, dtype), READONLY, nullptr},
      {"contiguous", T_BOOL, offsetof(Memory, contiguous), READONLY, nullptr},
      {"readonly", T_BOOL, offsetof(Memory, readonly), READONLY, nullptr},
      {"shape", T_OBJECT_EX, offsetof(Memory, shape), READONLY, nullptr},
      {"format", T_OBJECT_EX, offsetof(Memory, format), READONLY, nullptr},
      {nullptr, 0, 0, 0, nullptr}};
  static PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(make)},
                                {Py_tp_dealloc, reinterpret_cast<void*>(free_memory)},
                                {Py_tp_members, members},
                                {0, nullptr}};
  static PyType_Spec spec = {"khoro._core.Memory", sizeof(Memory), 0, Py_TPFLAGS_DEFAULT, slots};
  return PyType_FromSpec(&spec);
}

}  // namespace khoro::python
