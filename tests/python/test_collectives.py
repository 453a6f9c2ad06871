# SPDX-License-Identifier: Apache-2.0
"""Every collective gives what NumPy says, in all forms in which it can be called."""
import numpy
import pytest

import khoro
from support import on_threads

SIZES = [1, 2, 3, 5]
OPS = {khoro.SUM: lambda a: a.sum(0), khoro.PROD: lambda a: a.prod(0), khoro.MIN: lambda a: a.min(0),
       khoro.MAX: lambda a: a.max(0)}


def given(rank, shape, dtype="float32"):
    """Small integers, so that sums are exact; unlike on other ranks."""
    return ((numpy.arange(numpy.prod(shape)) * 7 + rank * 3) % 5 + 1).astype(dtype).reshape(shape)


def all_given(size, shape, dtype="float32"):
    return numpy.stack([given(rank, shape, dtype) for rank in range(size)])


@pytest.fixture(params=["blocks", "waits later", "in a group", "in a group that waits later"])
def form(request):
    """Makes a call in one of the forms, and returns its array once it is there."""
    def call(function, *arguments, **named):
        if request.param == "blocks":
            return function(*arguments, **named)
        if request.param == "waits later":
            return function(*arguments, wait=False, **named).wait()
        with khoro.group(wait=request.param == "in a group") as group:
            result = function(*arguments, **named)
        group.wait()
        assert group.done()
        return result
    return call


@pytest.mark.parametrize("size", SIZES)
def test_reductions_of_each_form(size, form):
    def body(comm):
        mine = given(comm.rank, (4, 3))
        expected = all_given(size, (4, 3)).sum(0)
        assert (form(comm.allreduce, mine) == expected).all()
        assert (mine == given(comm.rank, (4, 3))).all()
        out = numpy.zeros((4, 3), "float32")
        assert form(comm.allreduce, mine, out) is out and (out == expected).all()
        assert form(comm.allreduce, mine, mine) is mine and (mine == expected).all()
        reduced = form(comm.reduce, given(comm.rank, 5), root=size - 1)
        assert (reduced is None) == (comm.rank != size - 1)
        assert reduced is None or (reduced == all_given(size, 5).sum(0)).all()
        part = form(comm.reduce_scatter, given(comm.rank, (size, 3)))
        assert part.shape == (3,) and (part == all_given(size, (size, 3)).sum(0)[comm.rank]).all()
        counts = [rank % 3 for rank in range(size)]
        begin = sum(counts[:comm.rank])
        own = numpy.empty(counts[comm.rank], "float32")
        form(comm.reduce_scatterv, given(comm.rank, sum(counts)), own, counts)
        assert (own == all_given(size, sum(counts)).sum(0)[begin:begin + own.size]).all()
    on_threads(size, body)


@pytest.mark.parametrize("size", SIZES)
def test_moves_of_each_form(size, form):
    root = size // 2

    def body(comm):
        rank = comm.rank
        array = given(rank, 6)
        assert form(comm.broadcast, array, root) is array and (array == given(root, 6)).all()
        gathered = form(comm.allgather, given(rank, (2, 2)))
        assert gathered.shape == (size, 2, 2) and (gathered == all_given(size, (2, 2))).all()
        there = form(comm.gather, given(rank, 3), root=root)
        assert there is None if rank != root else (there == all_given(size, 3)).all()
        dealt = form(comm.scatter, given(9, (size, 2)) if rank == root else None,
                     numpy.empty(2, "float32"), root)
        assert (dealt == given(9, (size, 2))[rank]).all()
        turned = form(comm.alltoall, given(rank, (size, 2)))
        assert (turned == all_given(size, (size, 2))[:, rank]).all()
        form(comm.barrier)
    on_threads(size, body)


@pytest.mark.parametrize("size", SIZES)
def test_blocks_that_differ_of_each_form(size, form):
    counts = [(rank * 2) % 5 for rank in range(size)]
    total = sum(counts)
    expected = numpy.concatenate([given(rank, counts[rank]) for rank in range(size)])

    def body(comm):
        rank = comm.rank
        mine = given(rank, counts[rank])
        assert (form(comm.allgatherv, mine, numpy.empty(total, "float32"), counts) == expected).all()
        back = list(numpy.cumsum(counts[::-1])[::-1] - counts)  # the last rank's block comes first
        out = form(comm.allgatherv, mine, numpy.empty(total, "float32"), counts, back)
        assert (out == numpy.concatenate([given(r, counts[r]) for r in reversed(range(size))])).all()
        there = form(comm.gatherv, mine, numpy.empty(total, "float32") if rank == 0 else None,
                     counts if rank == 0 else None)
        assert there is None if rank else (there == expected).all()
        dealt = form(comm.scatterv, expected if rank == 0 else None, counts if rank == 0 else None,
                     numpy.empty(counts[rank], "float32"))
        assert (dealt == mine).all()
        # Rank r sends s + r elements to rank s.
        sends = [other + rank for other in range(size)]
        takes = [rank + other for other in range(size)]
        sent = numpy.repeat(numpy.float32(rank), sum(sends))
        got = form(comm.alltoallv, sent, sends, numpy.empty(sum(takes), "float32"), takes)
        assert (got == numpy.repeat(numpy.arange(size, dtype="float32"), takes)).all()
    on_threads(size, body)


@pytest.mark.parametrize("op", OPS)
def test_each_reduction(op):
    def body(comm):
        for dtype in ["int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32",
                      "float64"]:
            mine = given(comm.rank, 33, dtype)
            assert (comm.allreduce(mine, op=op) == OPS[op](all_given(3, 33, dtype))).all()
    on_threads(3, body)


def test_averages_and_bits():
    def body(comm):
        mine = given(comm.rank, 9, "int32")
        every = all_given(2, 9, "int32")
        assert (comm.allreduce(mine, op=khoro.AVG) == every.sum(0) // 2).all()
        assert (comm.allreduce(mine, op=khoro.BAND) == (every[0] & every[1])).all()
        assert (comm.allreduce(mine, op=khoro.BOR) == (every[0] | every[1])).all()
        assert (comm.allreduce(mine, op=khoro.BXOR) == (every[0] ^ every[1])).all()
    on_threads(2, body)


def test_reductions_of_ones_own():
    def body(comm):
        def larger(a, b):
            b[abs(a) > abs(b)] = a[abs(a) > abs(b)]
        op = comm.reduction(larger, "larger magnitude")
        mine = numpy.array([comm.rank - 1, 5 - 4 * comm.rank], "float64")
        for wait in (True, False):
            out = comm.allreduce(mine, op=op, wait=wait)
            out = out if wait else out.wait()
            assert abs(out).tolist() == [1, 5]
        scaled = comm.scaled_sum(numpy.array([comm.rank + 1], "float64"))
        assert (comm.allreduce(numpy.ones(3), op=scaled) == 6).all()
    on_threads(3, body)


def test_what_a_reduction_raises_is_raised_and_ends_the_communicator():
    def body(comm):
        def fail(a, b):
            raise KeyError("mine")
        op = comm.reduction(fail, "fails")
        with pytest.raises((KeyError, khoro.Error)):
            comm.allreduce(numpy.ones(3), op=op)
            comm.barrier()
        assert isinstance(comm.error(), khoro.Aborted)
    on_threads(2, body)


def test_messages():
    def body(comm):
        right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
        got = numpy.empty(4)
        with khoro.group():
            comm.send(given(comm.rank, 4, "float64"), right, tag=3)
            comm.recv(got, left, tag=3)
        assert (got == given(left, 4, "float64")).all()
        if comm.rank == 0:
            comm.send(numpy.arange(3), 1, tag=7)
            comm.send(numpy.arange(5), 1, tag=8)
        if comm.rank == 1:
            later, first = numpy.empty(5, "int64"), numpy.empty(3, "int64")
            comm.recv(later, 0, tag=8)  # the other is kept meanwhile
            comm.recv(first, 0, tag=7)
            assert later.tolist() == [0, 1, 2, 3, 4] and first.tolist() == [0, 1, 2]
        own = numpy.empty(2)
        with khoro.group():
            comm.send(numpy.array([1.0, 2.0]), comm.rank)
            comm.recv(own, comm.rank)
        assert own.tolist() == [1, 2]
    on_threads(3, body)


def test_an_exception_drops_the_calls_of_a_group():
    def body(comm):
        for calls in (0, 2):
            array = numpy.full(3, comm.rank, "float32")
            with pytest.raises(ZeroDivisionError):
                with khoro.group():
                    for _ in range(calls):
                        comm.allreduce(array, array)
                    1 / 0
            assert (array == comm.rank).all()
        assert (comm.allreduce(numpy.ones(2)) == 2).all()
    on_threads(2, body)


def test_groups_within_each_other_end_together():
    def body(comm):
        with khoro.group():
            with khoro.group():
                out = comm.allreduce(numpy.ones(3))
            again = comm.allreduce(numpy.ones(3))
        assert (out == 2).all() and (again == 2).all()
    on_threads(2, body)


def test_split():
    def body(comm):
        half = comm.split(comm.rank % 2, key=-comm.rank)
        members = [rank for rank in range(5) if rank % 2 == comm.rank % 2][::-1]
        assert half.size == len(members) and members[half.rank] == comm.rank
        assert half.allreduce(numpy.array([comm.rank])) == sum(members)
        alone = comm.split(0 if comm.rank == 4 else None)
        assert (alone is None) == (comm.rank != 4)
        half.close()
        if alone:
            alone.close()
    on_threads(5, body)
