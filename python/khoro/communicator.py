# SPDX-License-Identifier: Apache-2.0
"""Communicators: what ranks call together."""
from __future__ import annotations

import atexit
import collections
import math
import time
import weakref
from typing import Any, Callable, NamedTuple, Sequence

from khoro import _core
from khoro._arrays import (empty, has_count, movable, reducible, same_type, source, target, view_of)
from khoro._errors import IN_PROGRESS, SUCCESS, Error, InvalidArgument, InvalidUsage, of_result
from khoro._group import open_group
from khoro._types import Op
from khoro._work import Work

_open: "weakref.WeakSet[Communicator]" = weakref.WeakSet()


class Statistics(NamedTuple):
    """What a communicator has done and holds on this rank; bytes, but for the first."""

    collectives: int
    held: int
    sent: int
    transports: str
    stripes: tuple[int, ...]
    held_records: int
    held_channels: int
    held_partials: int
    held_messages: int
    held_programs: int


class Reduction:
    """A reduction of the caller's, for calls on the communicator that made it."""

    def __init__(self, number: int, held: Any = None) -> None:
        self.number = number
        self._held = held
        self._failure: BaseException | None = None


class Communicator:
    """This rank's membership in a group of ranks. Use it in ``with``, or close it.

    Every collective must be called by all ranks of the communicator, in the same order, with arrays
    of the same number of elements and the same type, unless it says otherwise. Arrays are NumPy's,
    or whatever has the buffer protocol or DLPack on the processor; their elements lie in a row. They
    are not copied. Types that Khoro cannot reduce can be moved: bool, complex, records.

    Calls block and return the array with the result: ``out``, or a new one if none is given. With
    ``wait=False`` they return a Work at once; then no array of theirs is to be touched until it has
    ended. Calls of a communicator run in the order in which they were made. Within ``with
    khoro.group()`` they begin at its end.

    One thread at a time calls; ``abort``, ``revoke``, ``error`` and ``statistics`` may be called by
    any. Ctrl-C ends a call that blocks, and with it the communicator, on all ranks.

    What calls raise: InvalidArgument before anything is sent, and InvalidUsage: both leave the
    communicator as it was; Timeout, Mismatch, PeerDied, RemoteError, Aborted, Revoked: all ranks get
    the same cause.
    """

    def __init__(self, handle: int, inherits: bool = True) -> None:
        """Use khoro.world() and its like. ``handle`` may be in progress; this waits for it."""
        self._handle = handle
        self._inherits = inherits
        self._stream = 0
        self._pending: collections.deque[Work[Any]] = collections.deque()
        _await_made(handle, handle)
        self._rank = _core.user_rank(handle)
        self._size = _core.count(handle)
        _open.add(self)

    @property
    def rank(self) -> int:
        """Which rank this is, from 0."""
        return self._rank

    @property
    def size(self) -> int:
        """How many ranks there are."""
        return self._size

    def __repr__(self) -> str:
        state = "" if self._handle else ", closed"
        return f"<khoro.Communicator: rank {self._rank} of {self._size}{state}>"

    # Collectives

    def allreduce(self, array: Any, out: Any = None, op: Op | Reduction = Op.SUM, *,
                  wait: bool = True) -> Any:
        """out[i] = reduction of array[i] over all ranks; both have one shape and type. In place:
        ``out is array``."""
        sent, got, result = self._like(array, out)
        return self._call(_core.allreduce, (sent.address, got.address, sent.count, reducible(sent),
                                            _number(op)), (sent, got, op), result, wait)

    def reduce(self, array: Any, out: Any = None, op: Op | Reduction = Op.SUM, root: int = 0, *,
               wait: bool = True) -> Any:
        """As allreduce, but rank ``root`` alone gets the result; the others get None."""
        sent, got, result = source(array), None, None
        if self._rank == root:
            sent, got, result = self._like(array, out)
        return self._call(_core.reduce, (sent.address, got.address if got else None, sent.count,
                                         reducible(sent), _number(op), root),
                          (sent, got, op), result, wait)

    def broadcast(self, array: Any, root: int = 0, *, wait: bool = True) -> Any:
        """The elements of ``array`` on rank ``root`` come to ``array`` on every other rank."""
        memory = source(array) if self._rank == root else target(array, "array")
        count, dtype = movable(memory)
        return self._call(_core.broadcast, (memory.address, memory.address, count, dtype, root),
                          memory, array, wait)

    def allgather(self, array: Any, out: Any = None, *, wait: bool = True) -> Any:
        """out[r] = array of rank r: ``out`` has the shape (size, *array.shape). In place: ``array``
        is ``out[rank]``."""
        sent = source(array)
        got, result = self._output(out, sent, (self._size, *sent.shape), array)
        return self._call(_core.allgather, (sent.address, got.address, *movable(sent)), (sent, got),
                          result, wait)

    def gather(self, array: Any, out: Any = None, root: int = 0, *, wait: bool = True) -> Any:
        """As allgather, but rank ``root`` alone gets the blocks; the others get None."""
        sent, got, result = source(array), None, None
        if self._rank == root:
            got, result = self._output(out, sent, (self._size, *sent.shape), array)
        return self._call(_core.gather, (sent.address, got.address if got else None,
                                         *movable(sent), root), (sent, got), result, wait)

    def scatter(self, array: Any = None, out: Any = None, root: int = 0, *,
                wait: bool = True) -> Any:
        """out = array[rank] of rank ``root``, where ``array`` has the shape (size, ...). The other
        ranks need not pass ``array``, and pass ``out``. In place on the root: ``out`` is
        ``array[root]``."""
        if self._rank != root:
            if out is None:
                raise InvalidArgument("out: a rank that is not the root passes what to write to")
            sent, got, result = None, target(out), out
        else:
            sent = source(array)
            got, result = self._output(out, sent, self._row(sent), array)
        count, dtype = movable(got)
        return self._call(_core.scatter, (sent.address if sent else None, got.address, count, dtype,
                                          root), (sent, got), result, wait)

    def reduce_scatter(self, array: Any, out: Any = None, op: Op | Reduction = Op.SUM, *,
                       wait: bool = True) -> Any:
        """out = reduction of array[rank] over all ranks, where ``array`` has the shape (size, ...).
        In place: ``out`` is ``array[rank]``."""
        sent = source(array)
        got, result = self._output(out, sent, self._row(sent), array)
        return self._call(_core.reduce_scatter, (sent.address, got.address, got.count,
                                                 reducible(sent), _number(op)),
                          (sent, got, op), result, wait)

    def alltoall(self, array: Any, out: Any = None, *, wait: bool = True) -> Any:
        """out[r] = array[rank] of rank r: every rank has a block for every rank, and both arrays the
        shape (size, ...). In place: ``out is array``."""
        sent, got, result = self._like(array, out)
        count, dtype = movable(sent)
        if count % self._size:
            raise InvalidArgument(f"array: {sent.count} elements are no {self._size} equal blocks")
        return self._call(_core.alltoall, (sent.address, got.address, count // self._size, dtype),
                          (sent, got), result, wait)

    def barrier(self, *, wait: bool = True) -> Any:
        """Returns after every rank has called it."""
        return self._call(_core.barrier, (), None, None, wait)

    # Collectives of blocks that may differ in length. Counts and displacements are sequences of one
    # number per rank, in elements; without displacements the blocks lie in a row.

    def allgatherv(self, array: Any, out: Any, counts: Sequence[int],
                   displacements: Sequence[int] | None = None, *, wait: bool = True) -> Any:
        """The ``counts[r]`` elements of rank r come to ``out`` from ``displacements[r]`` on, on every
        rank. ``counts`` is the same on all ranks."""
        sent, got = source(array), target(out)
        same_type(sent, got)
        count, dtype = movable(sent)
        blocks = _blocks(got, counts, displacements, self._size)
        return self._call(_core.allgatherv, (sent.address, count, got.address, *blocks, dtype),
                          (sent, got), out, wait)

    def gatherv(self, array: Any, out: Any = None, counts: Sequence[int] | None = None,
                displacements: Sequence[int] | None = None, root: int = 0, *,
                wait: bool = True) -> Any:
        """As allgatherv, on rank ``root`` alone; the others pass ``array`` only and get None."""
        sent, got = source(array), None
        blocks: tuple[Any, Any] = (None, None)
        if self._rank == root:
            got = target(out)
            same_type(sent, got)
            blocks = _blocks(got, counts or (), displacements, self._size)
        count, dtype = movable(sent)
        return self._call(_core.gatherv, (sent.address, count, got.address if got else None, *blocks,
                                          dtype, root), (sent, got), out if got else None, wait)

    def scatterv(self, array: Any, counts: Sequence[int] | None, out: Any,
                 displacements: Sequence[int] | None = None, root: int = 0, *,
                 wait: bool = True) -> Any:
        """Rank r gets the ``counts[r]`` elements of ``array`` on ``root`` from ``displacements[r]``
        on, into ``out``. The others pass None for ``array`` and ``counts``."""
        got, sent = target(out), None
        blocks: tuple[Any, Any] = (None, None)
        if self._rank == root:
            sent = source(array)
            same_type(got, sent, "array")
            blocks = _blocks(sent, counts or (), displacements, self._size, "array")
        count, dtype = movable(got)
        return self._call(_core.scatterv, (sent.address if sent else None, *blocks, got.address,
                                           count, dtype, root), (sent, got), out, wait)

    def reduce_scatterv(self, array: Any, out: Any, counts: Sequence[int],
                        op: Op | Reduction = Op.SUM, *, wait: bool = True) -> Any:
        """The reduction of ``array`` over all ranks is dealt out in a row: the first ``counts[0]``
        elements to rank 0, and so on. ``counts`` is the same on all ranks."""
        sent, got = source(array), target(out)
        same_type(sent, got)
        _blocks(sent, counts, None, self._size, "array")
        has_count(sent, sum(counts), "array")
        has_count(got, counts[self._rank])
        return self._call(_core.reduce_scatterv, (sent.address, got.address, counts,
                                                  reducible(sent), _number(op)),
                          (sent, got, op), out, wait)

    def alltoallv(self, array: Any, send_counts: Sequence[int], out: Any,
                  recv_counts: Sequence[int], send_displacements: Sequence[int] | None = None,
                  recv_displacements: Sequence[int] | None = None, *, wait: bool = True) -> Any:
        """The ``send_counts[r]`` elements of ``array`` from ``send_displacements[r]`` on come to rank
        r, whose ``recv_counts`` say so, to its ``out``."""
        sent, got = source(array), target(out)
        same_type(sent, got)
        return self._call(
            _core.alltoallv,
            (sent.address, *_blocks(sent, send_counts, send_displacements, self._size, "array"),
             got.address, *_blocks(got, recv_counts, recv_displacements, self._size),
             movable(got)[1]), (sent, got), out, wait)

    # Messages

    def send(self, array: Any, peer: int, tag: int = 0, *, wait: bool = True) -> Any:
        """Sends to rank ``peer``, which receives as many elements of the same type. The k-th send
        with a tag (0 .. 2**32 - 1) meets the k-th receive with it. It may return before it is
        received. To oneself: only in a group that holds both ends."""
        memory = source(array)
        return self._call(_core.send, (memory.address, *movable(memory), peer, tag), memory, None,
                          wait)

    def recv(self, out: Any, peer: int, tag: int = 0, *, wait: bool = True) -> Any:
        """Receives from rank ``peer`` what it sends with that tag, into ``out``."""
        memory = target(out)
        return self._call(_core.recv, (memory.address, *movable(memory), peer, tag), memory, out,
                          wait)

    # Other communicators and reductions

    def split(self, color: int | None, key: int = 0) -> "Communicator | None":
        """A communicator of all ranks that name the same color (0 or more), in the order of (key,
        rank). With None as color a rank takes part and gets None. Collective."""
        handle = _core.split(self._handle, -1 if color is None else color, key, self._inherits)
        try:
            made = Communicator(handle, self._inherits) if handle else None
            _await_made(self._handle, None)
        except BaseException:
            if not handle:
                _core.abort(self._handle)
            raise
        return made

    def reduction(self, function: Callable[[Any, Any], Any], name: str,
                  commutative: bool = True) -> Reduction:
        """A reduction of your own: ``function(a, b)`` gets two NumPy arrays of one dimension and
        writes "a op b" to b, element by element; it must be associative, and not call Khoro. ``name``
        is how ranks know that they mean the same. Unless ``commutative``, ranks are reduced in their
        order. What it raises, the call that used it raises, and aborts the communicator."""
        made = Reduction(0)

        def reduce(left: int, right: int, count: int, dtype: int) -> None:
            try:
                function(view_of(left, count, dtype), view_of(right, count, dtype))
            except BaseException as failure:  # there is nobody to raise it to, yet
                made._failure = made._failure or failure

        made.number, made._held = _core.make_reduction(self._handle, name, reduce, commutative)
        return made

    def scaled_sum(self, factor: Any) -> Reduction:
        """A sum of what the ranks give, each times its own ``factor``: an array of one element, of
        the type of the arrays that are reduced."""
        memory = source(factor, "factor")
        has_count(memory, 1, "factor")
        return Reduction(_core.make_scaled_sum(memory.address, reducible(memory), 1, self._handle))

    # Life

    def set_deadline(self, seconds: float) -> None:
        """Calls that begin after this one end within so many seconds; the default is 600."""
        _core.set_deadline(self._handle, max(1, round(seconds * 1000)))

    def error(self) -> Error | None:
        """What has ended the use of the communicator; None if nothing has. Any thread."""
        return _error_of(self._handle)

    def statistics(self) -> Statistics:
        """What it has done and holds. Any thread."""
        return Statistics(*_core.statistics(self._handle))

    def abort(self) -> None:
        """Ends all that waits in the communicator, here and on the other ranks, and its use. Any
        thread."""
        _core.abort(self._handle)

    def revoke(self) -> None:
        """As abort, for a job that goes on without this communicator: calls raise Revoked."""
        _core.revoke(self._handle, 0)

    def close(self) -> None:
        """Ends this rank's membership, after work that was begun with ``wait=False``. Local; a second
        call does nothing."""
        if not self._handle:
            return
        while self._pending:
            try:
                self._pending[0].wait()
            except Error:
                pass  # the Work has it, for who asks
            self._pending.popleft()
        handle, self._handle = self._handle, 0
        _open.discard(self)
        _core.destroy(handle)
        if self._stream:
            _core.stream_destroy(self._stream)

    def __enter__(self) -> "Communicator":
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is not None and self._pending and self._handle:
            self.abort()
        self.close()

    def __del__(self) -> None:
        try:
            self.close()
        except Exception:  # of a process that was forked, or is ending
            pass

    # How calls are made

    def _like(self, array: Any, out: Any) -> tuple[Any, Any, Any]:
        sent = source(array)
        if out is array:
            return sent, target(array), array
        return sent, *self._output(out, sent, sent.shape, array)

    def _output(self, out: Any, sent: Any, shape: Sequence[int], like: Any) -> tuple[Any, Any]:
        result = empty(shape, like) if out is None else out
        got = target(result)
        same_type(sent, got)
        has_count(got, math.prod(shape))
        return got, result

    def _row(self, memory: Any) -> Sequence[int]:
        if not memory.shape or memory.shape[0] != self._size:
            raise InvalidArgument(f"array: its shape is {memory.shape} and not ({self._size}, ...), "
                                  "one row for each rank")
        return memory.shape[1:]

    def _call(self, function: Callable[..., Any], arguments: tuple[Any, ...], held: Any, result: Any,
              wait: bool) -> Any:
        handle = self._handle
        if not handle:
            raise InvalidUsage("the communicator is closed")
        group = open_group()
        if group is None and wait:
            function(*arguments, handle, 0)
            if type(held) is tuple and type(held[-1]) is Reduction and held[-1]._failure:
                self._fail(held[-1])
            return result
        if group is not None:
            function(*arguments, handle, 0 if group._wait else self._own_stream())
            group._add(self, held)
            return result
        function(*arguments, handle, self._own_stream())
        return self._begun(result, held)

    def _own_stream(self) -> int:
        if not self._stream:
            self._stream = _core.stream_create()
        return self._stream

    def _begun(self, result: Any, held: Any) -> Work[Any]:
        work = Work(self._stream, result, held)
        pending = self._pending
        while pending and pending[0].done():
            pending.popleft()
        pending.append(work)
        return work

    def _fail(self, reduction: Reduction) -> None:
        failure, reduction._failure = reduction._failure, None
        self.abort()
        assert failure is not None
        raise failure


def _number(op: Op | Reduction) -> int:
    return op.number if isinstance(op, Reduction) else op


def _blocks(memory: Any, counts: Sequence[int], displacements: Sequence[int] | None, size: int,
            name: str = "out") -> tuple[Sequence[int], Sequence[int]]:
    """Counts and displacements in the elements of the call, all within the memory."""
    if len(counts) != size or (displacements is not None and len(displacements) != size):
        raise InvalidArgument(f"{name}: counts and displacements have one entry for each of "
                              f"{size} ranks")
    if displacements is None:
        displacements, next_one = [], 0
        for count in counts:
            displacements.append(next_one)
            next_one += count
    for count, place in zip(counts, displacements):
        if count < 0 or place < 0 or place + count > memory.count:
            raise InvalidArgument(f"{name}: a block of {count} elements at {place} is not within its "
                                  f"{memory.count}")
    unit = 1 if memory.dtype >= 0 else memory.itemsize
    if unit == 1:
        return counts, displacements
    return [count * unit for count in counts], [place * unit for place in displacements]


def _error_of(handle: int) -> Error | None:
    code = _core.async_error(handle)
    return None if code == SUCCESS else of_result(code, _core.last_error(handle))


def _await_made(handle: int, owned: int | None) -> None:
    """Waits until a communicator is made, or not in progress any more; destroys ``owned`` if that
    fails."""
    pause = 0.0002
    try:
        while (code := _core.async_error(handle)) == IN_PROGRESS:
            time.sleep(pause)
            pause = min(pause * 1.5, 0.01)
        if code != SUCCESS:
            raise of_result(code, _core.last_error(handle))
    except BaseException:
        if owned:
            _core.abort(owned)
            _core.destroy(owned)
        raise


def _close_all() -> None:
    """Peers learn that this rank has left, and need not think that it died."""
    for communicator in list(_open):
        try:
            communicator.close()
        except Exception:
            pass


atexit.register(_close_all)
