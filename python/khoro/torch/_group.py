# SPDX-License-Identifier: Apache-2.0
"""The process group: torch.distributed's calls, each as one of Khoro's."""
from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any, Callable, Sequence

import torch
import torch.distributed as dist

from khoro import _core
from khoro._errors import Error, InvalidArgument
from khoro.torch._calls import Reduction, all_of, row, unflattens
from khoro.torch._links import Link
from khoro.torch._meeting import meet
from khoro.torch._monitor import monitored_barrier
from khoro.torch._sparse import is_sum, sum_sparse
from khoro.torch._tensors import (NUMBERS, OPS, Tensor, check, flat, movable, same_type,
                                  unflatten)
from khoro.torch._work import Done, Finish, Pending, Several, translated

# The class that torch lets Python derive a backend from: newer ones have one for backends.
_Base = getattr(dist, "BackendBase", dist.ProcessGroup)
_DONE = Done()
_STRIDED = torch.strided
_UNSET = dist.AllreduceOptions().timeout


class Collectives:
    """What the ranks of a group call. `opts.asyncOp` says whether the caller waits at once: then the
    call blocks here, which is the fastest; else it is queued, and its tensors are kept until it has
    ended."""

    def __init__(self, store: Any, rank: int, size: int, timeout: timedelta, name: str) -> None:
        self._place, self._ranks = rank, size
        self._store = store
        self._timeout = self._deadline = timeout  # of the group, and of the call
        self._title = f"group {name}"
        self._lock = threading.RLock()
        self._links: dict[tuple[int, bool], Link] = {}
        self._coalesced: list[Any] | None = None
        self._calls = self._barriers = 0
        self._communicator = meet(store, "khoro", rank, size, timeout)
        self._handle = self._communicator._handle

    # How a call is made

    def _run(self, function: Callable[..., Any], arguments: tuple[Any, ...], opts: Any,
             tensors: Sequence[Tensor], held: Any = None, finish: Finish | None = None) -> Any:
        """`tensors` get the result; `held` are others that must stay; `finish` comes after."""
        return self._runall_of([(function, arguments)], opts, tensors, held, finish)

    def _runall_of(self, calls: Sequence[tuple[Callable[..., Any], tuple[Any, ...]]], opts: Any,
                 tensors: Sequence[Tensor], held: Any = None, finish: Finish | None = None) -> Any:
        waits = not opts.asyncOp and self._coalesced is None
        communicator = self._communicator
        with self._lock:
            self._calls += len(calls)
            stream = 0 if waits else communicator._own_stream()
            try:
                self._obey(opts)
                if len(calls) == 1:
                    function, arguments = calls[0]
                    function(*arguments, self._handle, stream)
                else:
                    self._group(calls, stream)
                if waits:
                    if finish:
                        finish()
                    return _DONE
                inner = communicator._begun(None, (tensors, held, finish))
            except Error as error:
                raise translated(error, self._title) from error
        work = Pending(inner, tensors, self._title, finish)
        if self._coalesced is not None:
            self._coalesced.append(work)
        return work

    def _group(self, calls: Sequence[tuple[Callable[..., Any], tuple[Any, ...]]],
               stream: int) -> None:
        _core.group_start()
        try:
            for function, arguments in calls:
                function(*arguments, self._handle, stream)
        except BaseException:
            _core.plan_destroy(_core.plan_create())
            raise
        _core.group_end()

    def _obey(self, opts: Any) -> None:
        """The deadline of the call: its own where it has one, else the group's."""
        timeout = self._timeout if opts.timeout == _UNSET else opts.timeout
        if timeout != self._deadline:
            self._communicator.set_deadline(timeout.total_seconds())
        self._deadline = timeout

    def _staged(self, tensor: Tensor) -> tuple[Tensor, Finish | None]:
        """Memory in a row for a tensor that a call writes, and how it comes back."""
        check(tensor)
        if tensor.is_contiguous():
            return tensor, None
        copy = tensor.contiguous()
        return copy, lambda: unflatten(copy.view(-1), [tensor])

    # Reductions

    def allreduce(self, tensors: list[Tensor], opts: Any = None) -> Any:
        opts = opts or dist.AllreduceOptions()
        if len(tensors) != 1:
            return self.allreduce_coalesced(tensors, opts)
        tensor = tensors[0]
        if tensor.layout is not _STRIDED:
            return self._allreduce_sparse(tensor, opts)
        # What most programs call most often, without whatever it does not need.
        dtype, op = NUMBERS.get(tensor.dtype), OPS.get(hash(opts.reduceOp))
        if (dtype is not None and op is not None and tensor.is_cpu and not opts.asyncOp
                and self._coalesced is None and tensor.is_contiguous()
                and opts.timeout == _UNSET and self._deadline is self._timeout):
            address = tensor.data_ptr()
            try:
                with self._lock:
                    self._calls += 1
                    _core.allreduce(address, address, tensor.numel(), dtype, op, self._handle, 0)
            except Error as error:
                raise translated(error, self._title) from error
            return _DONE
        staged, finish = self._staged(tensor)
        with self._reduction(opts.reduceOp, tensor.dtype) as (dtype, op):
            address = staged.data_ptr()
            return self._run(_core.allreduce, (address, address, staged.numel(), dtype, op), opts,
                             tensors, staged, finish)

    def _allreduce_sparse(self, tensor: Tensor, opts: Any) -> Any:
        if not is_sum(opts.reduceOp):
            raise InvalidArgument(f"{opts.reduceOp} of a sparse tensor: Khoro sums them only")
        with self._lock:
            self._calls += 1
            self._obey(opts)
            try:
                sum_sparse(self._handle, self._ranks, tensor)
            except Error as error:
                raise translated(error, self._title) from error
        return Done([tensor])

    def allreduce_coalesced(self, tensors: list[Tensor], opts: Any = None) -> Any:
        opts = opts or dist.AllreduceCoalescedOptions()
        same_type(tensors, tensors[0].dtype)
        staged = [self._staged(tensor) for tensor in tensors]
        with self._reduction(opts.reduceOp, tensors[0].dtype) as (dtype, op):
            calls = [(_core.allreduce, (each.data_ptr(), each.data_ptr(), each.numel(), dtype, op))
                     for each, _ in staged]
            return self._runall_of(calls, opts, tensors, staged, all_of(f for _, f in staged))

    def reduce(self, tensors: list[Tensor], opts: Any = None) -> Any:
        opts = opts or dist.ReduceOptions()
        tensor = tensors[0]
        staged, finish = self._staged(tensor)
        with self._reduction(opts.reduceOp, tensor.dtype) as (dtype, op):
            return self._run(_core.reduce, (staged.data_ptr(), staged.data_ptr(), staged.numel(),
                                            dtype, op, opts.rootRank), opts, tensors, staged, finish)

    def reduce_scatter(self, outputs: list[Tensor], inputs: list[list[Tensor]],
                       opts: Any = None) -> Any:
        opts = opts or dist.ReduceScatterOptions()
        output, parts = outputs[0], inputs[0]
        self._check_list(parts, output.dtype)
        staged, finish = self._staged(output)
        sent = flat(parts)
        counts = [part.numel() for part in parts]
        if counts[self._place] != output.numel():
            raise InvalidArgument(f"the output has {output.numel()} elements and this rank's input "
                                  f"{counts[self._place]}")
        with self._reduction(opts.reduceOp, output.dtype) as (dtype, op):
            if len(set(counts)) == 1:
                call = (_core.reduce_scatter, (sent.data_ptr(), staged.data_ptr(), counts[0], dtype,
                                               op))
            else:
                call = (_core.reduce_scatterv, (sent.data_ptr(), staged.data_ptr(), counts, dtype,
                                                op))
            return self._runall_of([call], opts, outputs, (sent, staged), finish)

    def reduce_scatter_single(self, output: Tensor, input: Tensor, opts: Any = None) -> Any:
        return self.reduce_scatter_single_coalesced([output], [input], opts)

    def reduce_scatter_single_coalesced(self, outputs: list[Tensor], inputs: list[Tensor],
                                        opts: Any = None) -> Any:
        opts = opts or dist.ReduceScatterOptions()
        staged = [self._staged(output) for output in outputs]
        sent = [check(input).contiguous() for input in inputs]
        with self._reduction(opts.reduceOp, outputs[0].dtype) as (dtype, op):
            calls = []
            for (got, _), each in zip(staged, sent):
                same_type([got, each], outputs[0].dtype)
                self._check_blocks(got, each)
                calls.append((_core.reduce_scatter, (each.data_ptr(), got.data_ptr(), got.numel(),
                                                     dtype, op)))
            return self._runall_of(calls, opts, outputs, (sent, staged), all_of(f for _, f in staged))

    def _reduction(self, op: Any, dtype: torch.dtype) -> Reduction:
        return Reduction(self._handle, op, dtype)

    # Moves

    def broadcast(self, tensors: list[Tensor], opts: Any = None) -> Any:
        opts = opts or dist.BroadcastOptions()
        staged = [self._staged(tensor) for tensor in tensors]
        calls = [(_core.broadcast, (each.data_ptr(), each.data_ptr(), *movable(each),
                                    opts.rootRank)) for each, _ in staged]
        return self._runall_of(calls, opts, tensors, staged, all_of(f for _, f in staged))

    def allgather(self, outputs: list[list[Tensor]], inputs: list[Tensor], opts: Any = None) -> Any:
        """outputs[i][r] = inputs[i] of rank r."""
        opts = opts or dist.AllgatherOptions()
        calls, held, finishes = [], [], []
        for parts, input in zip(outputs, inputs):
            self._check_list(parts, input.dtype)
            sent = check(input).contiguous()
            counts = [part.numel() for part in parts]
            if counts[self._place] != input.numel():
                raise InvalidArgument(f"the input has {input.numel()} elements and this rank's "
                                      f"output {counts[self._place]}")
            got = torch.empty(sum(counts), dtype=input.dtype)
            calls.append(self._gather_call(sent, got, counts))
            held.append((sent, got))
            finishes.append(unflattens(got, parts))
        tensors = [part for parts in outputs for part in parts]
        return self._runall_of(calls, opts, tensors, held, all_of(finishes))

    def allgather_coalesced(self, outputs: list[list[Tensor]], inputs: list[Tensor],
                            opts: Any = None) -> Any:
        """outputs[r][i] = inputs[i] of rank r."""
        self._check_count(outputs)
        return self.allgather([list(parts) for parts in zip(*outputs)], inputs, opts)

    def _gather_call(self, sent: Tensor, got: Tensor, counts: list[int]) -> Any:
        count, dtype = movable(sent)
        if len(set(counts)) == 1:
            return _core.allgather, (sent.data_ptr(), got.data_ptr(), count, dtype)
        return _core.allgatherv, (sent.data_ptr(), count, got.data_ptr(), *row(counts, got), dtype)

    def all_gather_single(self, output: Tensor, input: Tensor, opts: Any = None) -> Any:
        return self.all_gather_single_coalesced([output], [input], opts)

    def all_gather_single_coalesced(self, outputs: list[Tensor], inputs: list[Tensor],
                                    opts: Any = None) -> Any:
        opts = opts or dist.AllgatherOptions()
        staged = [self._staged(output) for output in outputs]
        sent = [check(input).contiguous() for input in inputs]
        calls = []
        for (got, _), each in zip(staged, sent):
            same_type([got], each.dtype)
            self._check_blocks(each, got)
            calls.append((_core.allgather, (each.data_ptr(), got.data_ptr(), *movable(each))))
        return self._runall_of(calls, opts, outputs, (sent, staged), all_of(f for _, f in staged))

    def gather(self, outputs: list[list[Tensor]], inputs: list[Tensor], opts: Any = None) -> Any:
        opts = opts or dist.GatherOptions()
        sent = check(inputs[0]).contiguous()
        count, dtype = movable(sent)
        if self._place != opts.rootRank:
            return self._run(_core.gatherv, (sent.data_ptr(), count, None, None, None, dtype,
                                             opts.rootRank), opts, [], sent)
        parts = outputs[0]
        self._check_list(parts, sent.dtype)
        counts = [part.numel() for part in parts]
        got = torch.empty(sum(counts), dtype=sent.dtype)
        return self._run(_core.gatherv, (sent.data_ptr(), count, got.data_ptr(), *row(counts, got),
                                         dtype, opts.rootRank), opts, parts, (sent, got),
                         unflattens(got, parts))

    def scatter(self, outputs: list[Tensor], inputs: list[list[Tensor]], opts: Any = None) -> Any:
        opts = opts or dist.ScatterOptions()
        staged, finish = self._staged(outputs[0])
        count, dtype = movable(staged)
        sent, counts, places = None, None, None
        if self._place == opts.rootRank:
            self._check_list(inputs[0], staged.dtype)
            sent = flat(inputs[0])
            counts, places = row([part.numel() for part in inputs[0]], sent)
        return self._run(_core.scatterv, (sent.data_ptr() if sent is not None else None, counts,
                                          places, staged.data_ptr(), count, dtype, opts.rootRank),
                         opts, outputs, (sent, staged), finish)

    def alltoall(self, outputs: list[Tensor], inputs: list[Tensor], opts: Any = None) -> Any:
        opts = opts or dist.AllToAllOptions()
        self._check_list(inputs, inputs[0].dtype)
        self._check_list(outputs, inputs[0].dtype)
        sent = flat(inputs)
        counts = [part.numel() for part in outputs]
        got = torch.empty(sum(counts), dtype=sent.dtype)
        return self._run(_core.alltoallv,
                         (sent.data_ptr(), *row([part.numel() for part in inputs], sent),
                          got.data_ptr(), *row(counts, got), movable(got)[1]),
                         opts, outputs, (sent, got), unflattens(got, outputs))

    def all_to_all_single(self, output: Tensor, input: Tensor, output_splits: list[int],
                          input_splits: list[int], opts: Any = None) -> Any:
        opts = opts or dist.AllToAllOptions()
        staged, finish = self._staged(output)
        sent = check(input).contiguous()
        same_type([staged], sent.dtype)
        if not output_splits and not input_splits:
            self._check_equal(staged, sent)
            count, dtype = movable(sent)
            call = (_core.alltoall, (sent.data_ptr(), staged.data_ptr(), count // self._ranks,
                                     dtype))
        else:
            call = (_core.alltoallv, (
                sent.data_ptr(), *row(self._splits(sent, input_splits), sent), staged.data_ptr(),
                *row(self._splits(staged, output_splits), staged), movable(staged)[1]))
        return self._runall_of([call], opts, [output], (sent, staged), finish)

    def barrier(self, opts: Any = None) -> Any:
        return self._run(_core.barrier, (), opts or dist.BarrierOptions(), [])

    # What older versions of torch call them
    _allgather_base = all_gather_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    _reduce_scatter_base = reduce_scatter_single
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
    alltoall_base = all_to_all_single

    # Messages

    def send(self, tensors: list[Tensor], dst: int, tag: int) -> Any:
        return self._message(tensors, dst, tag, sends=True)

    def recv(self, tensors: list[Tensor], src: int, tag: int) -> Any:
        return self._message(tensors, src, tag, sends=False)

    def recv_anysource(self, tensors: list[Tensor], tag: int) -> Any:
        raise InvalidArgument("a receive names the rank that sends; Khoro has none from any rank")

    def _message(self, tensors: list[Tensor], peer: int, tag: int, sends: bool) -> Any:
        tensor = check(tensors[0])
        if not 0 <= peer < self._ranks or peer == self._place:
            raise InvalidArgument(f"rank {self._place} exchanges messages with the other ranks of "
                                  f"0 .. {self._ranks - 1}, not with {peer}")
        staged, finish = (tensor.contiguous(), None) if sends else self._staged(tensor)
        with self._lock:
            link = self._links.get((peer, sends))
            if link is None:
                first, second = (self._place, peer) if sends else (peer, self._place)
                link = self._links[peer, sends] = Link(self._store, f"khoro/{first}-{second}", sends,
                                                       self._timeout)
        work = Pending(link.add(staged, tag), tensors, self._title, finish,
                       -1 if sends else peer)
        if self._coalesced is not None:
            self._coalesced.append(work)
        return work

    # The rest

    def _start_coalescing(self, device: torch.device | None = None) -> None:
        self._coalesced = []

    def _end_coalescing(self, device: torch.device | None = None) -> Any:
        works, self._coalesced = self._coalesced or [], None
        tensors = [tensor for work in works for tensor in work.result()]
        return Pending(Several([work._inner for work in works]), tensors, self._title,
                       all_of(work._settle for work in works))

    def monitored_barrier(self, timeout: timedelta | None = None,
                          wait_all_ranks: bool = False) -> None:
        """A barrier that names the ranks that do not come, on rank 0: the first, or all of them."""
        self._barriers += 1
        monitored_barrier(self._store, self._barriers, self._place, self._ranks,
                          self._timeout if timeout is None else timeout, wait_all_ranks)

    def set_timeout(self, timeout: timedelta) -> None:
        self._timeout = self._deadline = timeout
        self._communicator.set_deadline(timeout.total_seconds())

    _set_default_timeout = set_timeout

    def shutdown(self) -> None:
        for link in self._links.values():
            link.close()
        self._communicator.close()

    def abort(self) -> None:
        for link in self._links.values():
            link.abort()
        self._communicator.abort()

    def rank(self) -> int:
        return self._place

    def size(self) -> int:
        return self._ranks

    def name(self) -> str:
        return "khoro"

    def _get_sequence_number_for_group(self) -> int:
        return self._calls

    def _set_sequence_number_for_group(self) -> None:
        pass

    # Checks

    def _check_count(self, parts: Sequence[Any]) -> None:
        if len(parts) != self._ranks:
            raise InvalidArgument(f"a list of {len(parts)}, which must be {self._ranks}: one for "
                                  "each rank")

    def _check_list(self, parts: Sequence[Tensor], dtype: torch.dtype) -> None:
        self._check_count(parts)
        same_type([check(part) for part in parts], dtype)

    def _check_blocks(self, one: Tensor, all: Tensor) -> None:
        if one.numel() * self._ranks != all.numel():
            raise InvalidArgument(f"tensors of {one.numel()} and {all.numel()} elements; the second "
                                  f"must be {self._ranks} times the first")

    def _check_equal(self, output: Tensor, input: Tensor) -> None:
        if output.numel() != input.numel() or input.size(0) % self._ranks:
            raise InvalidArgument(f"tensors of shapes {tuple(output.shape)} and "
                                  f"{tuple(input.shape)}, which are no {self._ranks} equal parts")

    def _splits(self, tensor: Tensor, splits: Sequence[int]) -> list[int]:
        rows = tensor.size(0)
        if not splits:
            if rows % self._ranks:
                raise InvalidArgument(f"{rows} rows are no {self._ranks} equal parts")
            splits = [rows // self._ranks] * self._ranks
        if len(splits) != self._ranks or sum(splits) != rows:
            raise InvalidArgument(f"splits {list(splits)} are not {self._ranks} that add up to the "
                                  f"{rows} rows of the tensor")
        width = tensor.numel() // rows if rows else 0
        return [split * width for split in splits]


class KhoroGroup(Collectives, _Base):  # type: ignore[misc,valid-type]
    """A process group of ranks with tensors on the processor."""

    def __init__(self, store: Any, rank: int, size: int, timeout: timedelta, name: str) -> None:
        _Base.__init__(self, rank, size)
        self._group_name, self._group_desc = name, ""
        Collectives.__init__(self, store, rank, size, timeout, name)

    def getBackendName(self) -> str:
        return "khoro"

    _get_backend_name = getBackendName

    def _get_backend(self, device: torch.device) -> "KhoroGroup":
        return self

    def setGroupName(self, name: str) -> None:
        self._group_name = name

    def getGroupName(self) -> str:
        return self._group_name

    def setGroupDesc(self, description: str) -> None:
        self._group_desc = description

    def getGroupDesc(self) -> str:
        return self._group_desc

    _set_group_name, _set_group_desc = setGroupName, setGroupDesc
    group_name = property(getGroupName)
    group_desc = property(getGroupDesc)

    def get_group_store(self) -> Any:
        return self._store


def make_group(options: Any, backend_options: Any = None) -> KhoroGroup:
    """As torch calls it for init_process_group and new_group."""
    return KhoroGroup(options.store, options.group_rank, options.group_size, options.timeout,
                      options.group_id)
