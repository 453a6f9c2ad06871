# SPDX-License-Identifier: Apache-2.0
"""Whatever array is passed: a right result, or an error before anything is sent."""
import array
import ctypes

import numpy
import pytest

import khoro
from support import on_threads

BASE = numpy.arange(24, dtype="float32").reshape(4, 6)
STRIDED = {"every second": BASE[0, ::2], "a column": BASE[:, 1], "transposed": BASE.T,
           "backwards": BASE[0, ::-1], "a window": BASE[1:3, 1:4]}
CALLS = {
    "allreduce": lambda comm, a, out: comm.allreduce(a, out),
    "reduce": lambda comm, a, out: comm.reduce(a, out, root=comm.rank),
    "broadcast": lambda comm, a, out: comm.broadcast(a if out is None else out),
    "allgather": lambda comm, a, out: comm.allgather(a, out),
    "gather": lambda comm, a, out: comm.gather(a, out, root=comm.rank),
    "scatter": lambda comm, a, out: comm.scatter(a, out, root=comm.rank),
    "reduce_scatter": lambda comm, a, out: comm.reduce_scatter(a, out),
    "alltoall": lambda comm, a, out: comm.alltoall(a, out),
    "allgatherv": lambda comm, a, out: comm.allgatherv(a, a if out is None else out, [a.size] * 2),
    "send": lambda comm, a, out: comm.send(a, 1 - comm.rank),
    "recv": lambda comm, a, out: comm.recv(a if out is None else out, 1 - comm.rank),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", STRIDED)
def test_strided_arrays_are_refused_before_anything_is_sent(call, kind):
    def body(comm):
        strided = STRIDED[kind]
        before = comm.statistics().sent
        with pytest.raises(khoro.InvalidArgument, match="do not lie in a row"):
            CALLS[call](comm, strided, None)
        if call not in ("send", "broadcast", "recv"):
            with pytest.raises(khoro.InvalidArgument, match="do not lie in a row|shape"):
                CALLS[call](comm, numpy.ascontiguousarray(strided), numpy.empty_like(BASE.T)[::2])
        assert comm.statistics().sent == before
        copy = numpy.ascontiguousarray(strided)  # as the error says
        assert (comm.allreduce(copy) == 2 * strided).all()
    on_threads(2, body)


def test_shapes_with_strides_that_do_not_matter():
    def body(comm):
        for fine in (BASE[:1], BASE[:, :, None].transpose(2, 0, 1), numpy.empty((0, 3))[::2],
                     numpy.float32(3), numpy.array(3.0)):
            assert (comm.allreduce(fine) == 2 * numpy.asarray(fine)).all()
        assert comm.allgather(numpy.empty((0, 3))).shape == (2, 0, 3)
    on_threads(2, body)


def refused(match, call):
    def body(comm):
        with pytest.raises(khoro.InvalidArgument, match=match):
            call(comm)
        assert comm.error() is None
        assert (comm.allreduce(numpy.ones(2)) == 2).all()  # it is as it was
    on_threads(2, body)


def test_arrays_that_cannot_be_written():
    fixed = numpy.ones(3)
    fixed.flags.writeable = False
    refused("read-only", lambda comm: comm.allreduce(numpy.ones(3), fixed))
    refused("read-only", lambda comm: comm.recv(b"abc", 1 - comm.rank))
    refused("read-only", lambda comm: comm.broadcast(fixed, root=1 - comm.rank))
    on_threads(2, lambda comm: comm.allreduce(fixed))  # but they can be read


def test_arrays_that_do_not_fit_each_other():
    refused("4 elements", lambda comm: comm.allreduce(numpy.ones(3), numpy.ones(4)))
    refused("float64 and not float32",
            lambda comm: comm.allreduce(numpy.ones(3, "float32"), numpy.ones(3)))
    refused("int64", lambda comm: comm.allgather(numpy.ones(3, "complex64"), numpy.ones((2, 3), int)))
    refused("one row for each rank", lambda comm: comm.reduce_scatter(numpy.ones(6)))
    refused("equal blocks", lambda comm: comm.alltoall(numpy.ones(3)))
    refused("5 elements", lambda comm: comm.allgather(numpy.ones(3), numpy.ones(5)))
    refused("one entry for each", lambda comm: comm.allgatherv(numpy.ones(3), numpy.ones(6), [3]))
    refused("not within", lambda comm: comm.allgatherv(numpy.ones(3), numpy.ones(5), [3, 3]))
    refused("not within",
            lambda comm: comm.alltoallv(numpy.ones(2), [1, 1], numpy.ones(2), [1, 1], [0, 5]))


def test_arrays_that_overlap():
    both = numpy.ones(6)
    refused("overlap|in place", lambda comm: comm.allreduce(both[:4], both[2:]))


def test_arrays_of_the_wrong_byte_order_and_of_objects():
    refused("big-endian", lambda comm: comm.allreduce(numpy.ones(3, ">f4")))
    refused("big-endian", lambda comm: comm.broadcast(numpy.ones(3, ">i8")))
    refused("Python objects", lambda comm: comm.broadcast(numpy.array([1, None])))
    refused("Python objects", lambda comm: comm.broadcast(numpy.zeros(2, [("a", "O")])))
    refused("no array", lambda comm: comm.allreduce([1.0, 2.0]))
    refused("no array", lambda comm: comm.allreduce(None))


def test_types_that_can_only_be_moved():
    kinds = [numpy.array([True, False]), numpy.array([1 + 2j, 3]), numpy.array([1, -2], "int16"),
             numpy.array([(1, 2.5)], [("Offset", "i4"), ("b", "f8")])]

    def body(comm):
        for kind in kinds:
            mine = kind.copy() if comm.rank == 0 else numpy.zeros_like(kind)
            assert (comm.broadcast(mine) == kind).all()
            gathered = comm.allgather(kind)
            assert gathered.dtype == kind.dtype and (gathered[1] == kind).all()
    on_threads(2, body)
    for kind in kinds:
        refused("moved and not reduced", lambda comm, kind=kind: comm.allreduce(kind))


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_small_floats(name):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    dtype = getattr(ml_dtypes, name)

    def body(comm):
        mine = numpy.array([1, 2, 0.5, -4], dtype) * dtype(comm.rank + 1)
        total = comm.allreduce(mine)
        assert total.dtype == dtype and total.astype(float).tolist() == [3, 6, 1.5, -12]
        assert comm.allgather(mine).astype(float)[1].tolist() == [2, 4, 1, -8]
        with pytest.raises(khoro.InvalidArgument, match="in a row"):
            comm.allreduce(mine[::2])

        def add(a, b):
            b[:] = a + b
        assert comm.allreduce(mine, op=comm.reduction(add, "add")).dtype == dtype
        khoro.shared_array(3, dtype)
    on_threads(2, body)


def test_whatever_has_the_buffer_protocol():
    def body(comm):
        words = bytearray(b"abcd") if comm.rank == 0 else bytearray(4)
        assert comm.broadcast(words) == b"abcd"
        assert comm.allreduce(memoryview(array.array("d", [1, 2]))).tolist() == [2, 4]
        fixed = (ctypes.c_float * 3)(1, 2, 3)
        assert comm.allreduce(fixed, fixed) is fixed and list(fixed) == [2, 4, 6]
        assert comm.allgather(b"ab", bytearray(4)) == b"abab"
    on_threads(2, body)


class OnlyDlpack:
    """An array that says nothing of its memory but by DLPack, of either age."""

    def __init__(self, inside, versions):
        self.inside, self.versions = inside, versions

    def __dlpack_device__(self):
        return self.inside.__dlpack_device__()

    def __dlpack__(self, **named):
        if named and not self.versions:
            raise TypeError("unexpected keyword argument 'max_version'")
        return self.inside.__dlpack__(**named)


@pytest.mark.parametrize("versions", [True, False])
def test_whatever_has_dlpack(versions):
    def body(comm):
        inside = numpy.arange(3, dtype="float32")
        wrapped = OnlyDlpack(inside, versions)
        assert (comm.allreduce(wrapped, numpy.empty(3, "float32")) == 2 * numpy.arange(3)).all()
        comm.allreduce(wrapped, wrapped)
        assert (inside == 2 * numpy.arange(3)).all()
        with pytest.raises(khoro.InvalidArgument, match="in a row"):
            comm.allreduce(OnlyDlpack(BASE[:, 1], versions), wrapped)
        fixed = inside.copy()
        fixed.flags.writeable = False
        if versions and numpy.lib.NumpyVersion(numpy.__version__) >= "2.1.0":
            with pytest.raises(khoro.InvalidArgument, match="read-only"):
                comm.allreduce(inside, OnlyDlpack(fixed, versions))
    on_threads(2, body)


def test_memory_that_other_ranks_read_in_place():
    def body(comm):
        shared = khoro.shared_array((3, 2), "int64")
        assert shared.shape == (3, 2) and shared.flags.writeable and not shared.any()
        shared += comm.rank
        part = shared[1:]
        assert (comm.allreduce(shared) == 1).all()
        del shared
        part += 1  # it is there as long as something shows it
        assert (comm.allreduce(part) == 3).all()
    on_threads(2, body)
    assert khoro.shared_array(0).size == 0
