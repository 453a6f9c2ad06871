# SPDX-License-Identifier: Apache-2.0
"""Calls on NumPy's arrays, for three ranks:

    khoro run -n 3 python examples/numpy_calls.py

Needs numpy.
"""
import asyncio
import sys

import numpy

import khoro


# quote: begin collectives
def collectives(comm: khoro.Communicator) -> None:
    mine = numpy.full(3, comm.rank + 1, "float32")
    total = comm.allreduce(mine)                  # a new array of the same shape
    comm.allreduce(mine, mine, khoro.MAX)         # in place, and another reduction than the sum
    table = comm.allgather(mine[:2])              # a new array of the shape (size, 2)
    first = numpy.zeros(4) if comm.rank else numpy.arange(4.0)
    comm.broadcast(first, root=0)                 # what rank 0 has comes to all
    print(f"rank {comm.rank}: {total} {mine} {table.shape} {first}")
# quote: end


# quote: begin later
def later(comm: khoro.Communicator) -> None:
    layers = [numpy.full(100_000, comm.rank + layer, "float32") for layer in range(4)]
    works = [comm.allreduce(each, each, khoro.AVG, wait=False) for each in layers]
    # ... the rank computes; the arrays are not to be touched ...
    means = [work.wait() for work in works]       # each returns its array
    print(f"rank {comm.rank}: {[float(mean[0]) for mean in means]}")


async def in_a_coroutine(comm: khoro.Communicator) -> None:
    await comm.barrier(wait=False)
# quote: end


# quote: begin groups
def around_the_ring(comm: khoro.Communicator) -> None:
    mine, left = numpy.array([comm.rank]), numpy.empty(1, int)
    with khoro.group():                           # both begin at its end, so nobody waits in a circle
        comm.send(mine, (comm.rank + 1) % comm.size)
        comm.recv(left, (comm.rank - 1) % comm.size)
    print(f"rank {comm.rank}: rank {left[0]} is to the left")
# quote: end


# quote: begin split
def by_two(comm: khoro.Communicator) -> None:
    with comm.split(color=comm.rank // 2) as pair:
        print(f"rank {comm.rank}: rank {pair.rank} of {pair.size} among two")
# quote: end


# quote: begin errors
def meet_all(comm: khoro.Communicator) -> bool:
    try:
        comm.barrier()
        return True
    except khoro.PeerDied as died:                # which rank, during which call
        print(f"rank {comm.rank} goes on alone: {died}", file=sys.stderr)
    except khoro.Timeout as late:                 # which ranks did not call
        print(f"rank {comm.rank} gives up: {late}", file=sys.stderr)
    return False                                  # its use has ended, on all ranks
# quote: end


# quote: begin world
with khoro.world({"KHORO_DEADLINE": "60s"}) as comm:  # the ranks that the launcher started
    total = comm.allreduce(numpy.full(3, comm.rank + 1, "float32"))
    print(f"rank {comm.rank} of {comm.size}: {total}")
    # quote: end
    collectives(comm)
    later(comm)
    asyncio.run(in_a_coroutine(comm))
    around_the_ring(comm)
    by_two(comm)
    if not meet_all(comm):
        sys.exit(1)
