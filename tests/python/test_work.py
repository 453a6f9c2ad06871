# SPDX-License-Identifier: Apache-2.0
"""Work that goes on behind the caller's back."""
import asyncio
import gc
import threading
import weakref

import numpy
import pytest

import khoro
from support import LONG, on_threads


def test_it_can_be_asked_and_waited_for():
    gate = threading.Event()

    def body(comm):
        if comm.rank == 1:
            gate.wait(LONG)
            comm.allreduce(numpy.ones(3))
            return
        work = comm.allreduce(numpy.ones(3), wait=False)
        assert not work.done() and work.exception() is None
        with pytest.raises(TimeoutError, match="it goes on"):
            work.wait(0.05)
        assert not isinstance(comm.error(), khoro.Error)
        gate.set()
        assert (work.wait(LONG) == 2).all() and work.done()
        assert (work.wait() == 2).all()  # again
    on_threads(2, body)


def test_it_runs_in_order_and_keeps_its_arrays():
    def body(comm):
        works, kept = [], []
        for step in range(50):
            array = numpy.full(1000, step + comm.rank, "float32")
            kept.append(weakref.ref(array))
            works.append(comm.allreduce(array, wait=False))
        del array
        gc.collect()
        for step, work in enumerate(works):
            assert (work.wait() == 2 * step + 1).all()
        del works, work
        comm.barrier(wait=False).wait()
        comm.barrier(wait=False).wait()
        gc.collect()
        assert all(ref() is None for ref in kept)  # and lets them go
    on_threads(2, body)


def test_nobody_need_keep_it():
    def body(comm):
        out = numpy.zeros(200_000, "float32")
        for _ in range(20):
            comm.allreduce(numpy.ones(200_000, "float32"), out, wait=False)
            gc.collect()
        comm.barrier()
        assert (out == 2).all()
    on_threads(2, body)


def test_callbacks_and_coroutines():
    def body(comm):
        called = threading.Event()
        seen = []
        work = comm.allreduce(numpy.ones(2), wait=False)
        work.add_done_callback(lambda ended: (seen.append(ended.wait()), called.set()))
        assert called.wait(LONG) and (seen[0] == 2).all()
        called.clear()
        work.add_done_callback(lambda ended: called.set())  # it has ended already
        assert called.is_set()

        async def several():
            works = [comm.allreduce(numpy.full(2, i), wait=False) for i in range(5)]
            return await asyncio.gather(*(wait_for(each) for each in works))

        async def wait_for(each):
            return await each
        assert [int(out[0]) for out in asyncio.run(several())] == [0, 2, 4, 6, 8]
    on_threads(2, body)


def test_its_failure_is_raised_by_who_asks():
    begun = threading.Event()

    def body(comm):
        if comm.rank == 1:
            assert begun.wait(LONG)  # a call that is made after a failure raises at once
            with pytest.raises(khoro.Mismatch):
                comm.allreduce(numpy.ones(3))
                comm.barrier()
            return
        work = comm.allreduce(numpy.ones(4), wait=False)
        behind = comm.barrier(wait=False)
        begun.set()
        for each in (work, behind):
            with pytest.raises(khoro.Mismatch, match="rank 1"):
                each.wait(LONG)
            assert each.done() and isinstance(each.exception(), khoro.Mismatch)

        async def ask():
            await work
        with pytest.raises(khoro.Mismatch):
            asyncio.run(ask())
    on_threads(2, body)


def test_closing_waits_for_it():
    def body(comm):
        array = numpy.ones(100_000)
        comm.allreduce(array, array, wait=False)
        comm.close()
        assert (array == 2).all()
    on_threads(2, body)
