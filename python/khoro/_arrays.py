# SPDX-License-Identifier: Apache-2.0
"""What calls need to know of the arrays that they are given: checked before anything is sent."""
from __future__ import annotations

import ctypes
import math
import weakref
from typing import TYPE_CHECKING, Any, Sequence

from khoro import _core
from khoro._core import Memory
from khoro._errors import InvalidArgument
from khoro._types import DType

if TYPE_CHECKING:
    import numpy

# NumPy has no letter for them in the buffer protocol.
_SMALL_FLOATS = {"bfloat16": ("uint16", int(DType.BFLOAT16)),
                 "float8_e4m3fn": ("uint8", int(DType.FLOAT8_E4M3FN)),
                 "float8_e5m2": ("uint8", int(DType.FLOAT8_E5M2))}


def _memory(array: Any, name: str) -> Memory:
    try:
        return Memory(array)
    except InvalidArgument as refused:
        raise InvalidArgument(f"{name}: {refused}") from None
    except (ValueError, BufferError, TypeError) as refused:
        # ml_dtypes registers them with NumPy, which cannot say so in the buffer protocol.
        small = _SMALL_FLOATS.get(str(getattr(array, "dtype", "")))
        if small and hasattr(array, "view"):
            return Memory(array.view(small[0]), small[1])
        raise InvalidArgument(f"{name}: its memory cannot be seen: {refused}") from refused


def source(array: Any, name: str = "array") -> Memory:
    """The memory of an array that is read, whose elements lie in a row."""
    memory = _memory(array, name)
    if not memory.contiguous:
        raise InvalidArgument(
            f"{name}: its elements do not lie in a row (shape {memory.shape}); Khoro copies nothing "
            "behind your back: pass numpy.ascontiguousarray(...), or .contiguous() of a tensor")
    return memory


def target(array: Any, name: str = "out") -> Memory:
    """The memory of an array that is written."""
    memory = source(array, name)
    if memory.readonly:
        raise InvalidArgument(f"{name}: it is read-only; pass a copy, or one that owns its memory")
    return memory


def same_type(one: Memory, other: Memory, name: str = "out") -> None:
    if one.dtype == other.dtype and (one.dtype >= 0 or one.format == other.format):
        return
    raise InvalidArgument(f"{name}: its elements are {words(other)} and not {words(one)}")


def has_count(memory: Memory, count: int, name: str = "out") -> None:
    if memory.count != count:
        raise InvalidArgument(
            f"{name}: it has {memory.count} elements (shape {memory.shape}), which must be {count}")


def words(memory: Memory) -> str:
    return DType(memory.dtype).name.lower() if memory.dtype >= 0 else f"of format {memory.format!r}"


def reducible(memory: Memory, name: str = "array") -> int:
    """The number of its type, if that can be reduced."""
    if memory.dtype < 0:
        raise InvalidArgument(
            f"{name}: elements {words(memory)} can be moved and not reduced; convert them to one of "
            + ", ".join(dtype.name.lower() for dtype in DType))
    return memory.dtype


def movable(memory: Memory) -> tuple[int, int]:
    """Number of elements and type for calls that only move them: bytes, where Khoro has no name for
    the type."""
    if memory.dtype >= 0:
        return memory.count, memory.dtype
    return memory.count * memory.itemsize, int(DType.UINT8)


def empty(shape: Sequence[int], like: Any) -> Any:
    """A new array of that shape, of the kind and type of another one."""
    if hasattr(like, "new_empty"):  # as tensors have
        return like.new_empty(tuple(shape))
    import numpy

    dtype = getattr(like, "dtype", None)
    return numpy.empty(shape, dtype if dtype is not None else memoryview(like).format)


def shared_array(shape: int | Sequence[int], dtype: Any = "float32") -> numpy.ndarray:
    """A NumPy array of zeros in memory that ranks of other processes read where it lies.

    What calls send from it is not copied on the way to ranks of this machine. It may be used as any
    array, in every communicator, and goes with the last array that shows it. ``dtype`` is any that
    NumPy knows. Raises OutOfMemory.
    """
    import numpy

    lengths = (shape,) if isinstance(shape, int) else tuple(shape)
    kind = numpy.dtype(dtype)
    size = math.prod(lengths) * kind.itemsize
    address = _core.mem_alloc(max(size, 1))
    block = (ctypes.c_char * max(size, 1)).from_address(address)
    weakref.finalize(block, _core.mem_free, address).atexit = False
    return numpy.frombuffer(block, numpy.uint8, size).view(kind).reshape(lengths)


def view_of(address: int, count: int, dtype: int) -> numpy.ndarray:
    """Memory as a NumPy array, which is valid as long as the memory is."""
    import numpy

    kind = DType(dtype)
    block = (ctypes.c_char * (count * kind.itemsize)).from_address(address)
    return numpy.frombuffer(block, numpy.uint8).view(kind.numpy)
