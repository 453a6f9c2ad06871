# SPDX-License-Identifier: Apache-2.0
"""What torch.distributed and what stands on it do on Khoro; a program for several ranks.

usage: khoro run -n 3 -- python torch_calls.py [NAME...]
"""
import os
import sys
import tempfile
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.parallel import DistributedDataParallel

import khoro
import khoro.torch  # noqa: F401: registers the backend

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
SOON = timedelta(milliseconds=400)


def mine(*shape, dtype=torch.float32, rank=RANK):
    """Small integers that differ from rank to rank."""
    count = torch.Size(shape).numel()
    return ((torch.arange(count) * 3 + rank * 5) % 4 + 1).to(dtype).reshape(shape)


def every(*shape, dtype=torch.float32):
    return torch.stack([mine(*shape, dtype=dtype, rank=rank) for rank in range(SIZE)])


def same(got, expected):
    assert torch.equal(got, expected), (got, expected)


def both(call, *arguments, **named):
    """In both forms: the caller waits at once, or later."""
    for later in (False, True):
        work = call(*arguments, async_op=later, **named)
        if later:
            work.wait()
        yield


def raises(kind, words, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except kind as error:
        for word in words.split("|"):
            assert word in str(error), (word, str(error))
        assert isinstance(error, khoro.Error) or isinstance(error.__cause__, khoro.Error)
        return
    raise AssertionError(f"{call} raised nothing")


def reductions():
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8,
                  torch.uint8, torch.int32, torch.int64):
        for op, expected in ((dist.ReduceOp.SUM, every(5, dtype=dtype).sum(0, dtype=dtype)),
                             (dist.ReduceOp.PRODUCT, every(5, dtype=dtype).prod(0, dtype=dtype)),
                             (dist.ReduceOp.MIN, every(5, dtype=dtype).amin(0)),
                             (dist.ReduceOp.MAX, every(5, dtype=dtype).amax(0))):
            for later in (False, True):
                tensor = mine(5, dtype=dtype)
                work = dist.all_reduce(tensor, op, async_op=later)
                if later:
                    work.wait()
                same(tensor, expected)
    tensor = mine(4)
    dist.all_reduce(tensor, dist.ReduceOp.AVG)
    same(tensor, every(4).sum(0) / SIZE)
    bits = mine(4, dtype=torch.int32)
    dist.all_reduce(bits, dist.ReduceOp.BXOR)
    expected = every(4, dtype=torch.int32)
    for row in expected[1:]:
        expected[0] ^= row
    same(bits, expected[0])
    flags = torch.tensor([RANK == 0, True, False])
    dist.all_reduce(flags, dist.ReduceOp.MAX)
    same(flags, torch.tensor([True, True, False]))
    scaled = torch.ones(3)
    dist.all_reduce(scaled, dist._make_nccl_premul_sum(2.0))
    same(scaled, torch.full((3,), 2.0 * SIZE))
    tensor = mine(3)
    dist.reduce(tensor, 1 % SIZE)
    if RANK == 1 % SIZE:
        same(tensor, every(3).sum(0))
    turned = torch.complex(mine(3), mine(3))
    dist.all_reduce(turned)
    same(turned, torch.complex(every(3).sum(0), every(3).sum(0)))


def tensors_in_any_layout():
    for later in (False, True):
        whole = mine(4, 6)
        for view in (whole.t(), whole[:, ::2], whole[1], whole.view(2, 3, 2, 2).to(
                memory_format=torch.channels_last)):
            view = view.clone(memory_format=torch.preserve_format)
            source = view.clone()
            gathered = [torch.empty_like(view) for _ in range(SIZE)]
            works = [dist.all_gather(gathered, view, async_op=later)]
            if later:
                works[0].wait()
            expected = sum(gathered[1:], gathered[0].clone())
            works = [dist.all_reduce(view, async_op=later)]
            if later:
                works[0].wait()
            same(view, expected)
            same(gathered[RANK], source)
        column = torch.zeros(4, 3)[:, 1]
        column += RANK + 1
        work = dist.broadcast(column, SIZE - 1, async_op=later)
        if later:
            work.wait()
        same(column, torch.full((4,), float(SIZE)))
    for empty in (torch.empty(0), torch.empty(3, 0)):
        dist.all_reduce(empty)
    number = torch.tensor(2.0)
    dist.all_reduce(number)
    same(number, torch.tensor(2.0 * SIZE))


def gathers():
    for later in (False, True):
        def do(call, *arguments, **named):
            work = call(*arguments, async_op=later, **named)
            if later:
                work.wait()
        parts = [torch.empty(2, 3) for _ in range(SIZE)]
        do(dist.all_gather, parts, mine(2, 3))
        same(torch.stack(parts), every(2, 3))
        out = torch.empty(SIZE * 2, 3)
        do(dist.all_gather_into_tensor, out, mine(2, 3))
        same(out.view(SIZE, 2, 3), every(2, 3))
        out[RANK * 2:RANK * 2 + 2] = mine(2, 3)
        do(dist.all_gather_into_tensor, out, out[RANK * 2:RANK * 2 + 2])  # in place
        same(out.view(SIZE, 2, 3), every(2, 3))
        uneven = [torch.empty(rank + 1) for rank in range(SIZE)]
        do(dist.all_gather, uneven, mine(RANK + 1))
        for rank, part in enumerate(uneven):
            same(part, mine(rank + 1, rank=rank))
        parts = [torch.empty(3) for _ in range(SIZE)] if RANK == 0 else None
        do(dist.gather, mine(3), parts, 0)
        if RANK == 0:
            same(torch.stack(parts), every(3))
        out = torch.empty(3)
        do(dist.scatter, out, list(every(3)) if RANK == SIZE - 1 else None, SIZE - 1)
        same(out, mine(3))
        out = torch.empty(3)
        do(dist.reduce_scatter, out, list(mine(SIZE, 3)))
        same(out, every(SIZE, 3).sum(0)[RANK])
        do(dist.reduce_scatter_tensor, out, mine(SIZE * 3), op=dist.ReduceOp.AVG)
        same(out, every(SIZE * 3).sum(0)[RANK * 3:RANK * 3 + 3] / SIZE)
        out = torch.empty(SIZE, 2)
        do(dist.all_to_all_single, out, mine(SIZE, 2))
        same(out, every(SIZE, 2)[:, RANK])
        sends = [rank + RANK for rank in range(SIZE)]
        out = torch.empty(sum(sends), 2)
        do(dist.all_to_all_single, out, torch.full((sum(sends), 2), float(RANK)), sends, sends)
        same(out[:, 0], torch.repeat_interleave(torch.arange(SIZE, dtype=torch.float32),
                                                torch.tensor(sends)))
        parts = [torch.empty(rank + RANK) for rank in range(SIZE)]
        do(dist.all_to_all, parts, [torch.full((rank + RANK,), float(RANK)) for rank in range(SIZE)])
        for rank, part in enumerate(parts):
            same(part, torch.full((rank + RANK,), float(rank)))
        flags = [torch.empty(2, dtype=torch.bool) for _ in range(SIZE)]
        do(dist.all_gather, flags, torch.tensor([RANK == 0, True]))
        same(flags[0], torch.tensor([True, True]))


def objects():
    got = [None] * SIZE
    dist.all_gather_object(got, {"rank": RANK, "list": list(range(RANK))})
    assert [each["rank"] for each in got] == list(range(SIZE))
    words = [f"from {RANK}"]
    dist.broadcast_object_list(words, SIZE - 1)
    assert words == [f"from {SIZE - 1}"]
    out = [None]
    dist.scatter_object_list(out, [str(rank) for rank in range(SIZE)] if RANK == 0 else None)
    assert out == [str(RANK)]


def coalesced():
    first, second = mine(3), mine(5)
    with dist._coalescing_manager():
        dist.all_reduce(first)
        dist.all_reduce(second)
    same(first, every(3).sum(0))
    same(second, every(5).sum(0))
    outs = [torch.empty(SIZE, 2), torch.empty(SIZE, 3)]
    with dist._coalescing_manager(async_ops=True) as manager:
        dist.all_gather_into_tensor(outs[0], mine(2))
        dist.all_gather_into_tensor(outs[1], mine(3))
    manager.wait()
    same(outs[0], every(2))
    same(outs[1], every(3))
    with dist._coalescing_manager(device=torch.device("cpu"), async_ops=True) as manager:
        dist.all_reduce(first)
    manager.wait()
    same(first, SIZE * every(3).sum(0))


def messages():
    right, left = (RANK + 1) % SIZE, (RANK - 1) % SIZE
    if SIZE == 1:
        return
    # In an order that would stop ranks which make one call after the other.
    got = [torch.empty(100_000), torch.empty(100_000)]
    works = [dist.irecv(got[1], left, tag=2), dist.irecv(got[0], left, tag=1)]
    works += [dist.isend(torch.full((100_000,), 1.0 + RANK), right, tag=1),
              dist.isend(torch.full((100_000,), 10.0 + RANK), right, tag=2)]
    tensor = torch.ones(3)
    dist.all_reduce(tensor)  # beside them
    for work in works:
        work.wait()
    same(got[0], torch.full((100_000,), 1.0 + left))
    same(got[1], torch.full((100_000,), 10.0 + left))
    received = torch.empty(4)
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, mine(4), right),
                                        dist.P2POp(dist.irecv, received, left)]):
        work.wait()
    same(received, mine(4, rank=left))
    if RANK == 0:
        dist.send(mine(3), 1)
    if RANK == 1:
        column = torch.zeros(3, 2)[:, 0]
        assert dist.recv(column, 0) == 0
        same(column, mine(3, rank=0))


def groups():
    half = dist.new_group(list(range(0, SIZE, 2)))
    if RANK % 2 == 0:
        tensor = mine(3)
        dist.all_reduce(tensor, group=half)
        same(tensor, every(3)[::2].sum(0))
    mesh = init_device_mesh("cpu", (SIZE, 1), mesh_dim_names=("rows", "columns"))
    tensor = mine(3)
    dist.all_reduce(tensor, group=mesh.get_group("rows"))
    same(tensor, every(3).sum(0))
    dist.all_reduce(tensor, group=mesh.get_group("columns"))
    same(tensor, every(3).sum(0))
    dist.group.WORLD.monitored_barrier(timedelta(seconds=20))


def futures():
    tensor = mine(3)
    future = dist.all_reduce(tensor, async_op=True).get_future()
    doubled = future.then(lambda done: done.value()[0] * 2)
    same(doubled.wait(), 2 * every(3).sum(0))
    # Who has asked need not wait.
    got = [torch.empty(3) for _ in range(SIZE)]
    work = dist.all_gather(got, mine(3), async_op=True)
    while not work.is_completed():
        time.sleep(0.001)
    same(torch.stack(got), every(3))
    # What is begun and forgotten goes on, and keeps its tensors.
    for _ in range(10):
        dist.all_reduce(torch.ones(50_000), async_op=True)
    chained = dist.all_reduce(mine(2), async_op=True).get_future().then(
        lambda done: dist.all_reduce(done.value()[0], async_op=True).get_future().wait()[0])
    same(chained.wait(), SIZE * every(2).sum(0))


def functional_calls():
    same(functional.all_reduce(mine(3), "sum", dist.group.WORLD) + 0, every(3).sum(0))
    same(functional.all_gather_tensor(mine(2, 2), 0, dist.group.WORLD) + 0,
         every(2, 2).reshape(-1, 2))
    same(functional.reduce_scatter_tensor(mine(SIZE, 2), "sum", 0, dist.group.WORLD) + 0,
         every(SIZE, 2).sum(0)[RANK:RANK + 1])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 3)
        self.unused = nn.Linear(2, 2)

    def forward(self, x):
        return self.last(self.norm(torch.relu(self.first(x))))


def batches():
    generator = torch.Generator().manual_seed(5)
    return [torch.randn(SIZE * 4, 6, generator=generator) for _ in range(4)]


def train(wrap, share):
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)).double()
    model = wrap(net)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.5)
    for batch in batches():
        optimizer.zero_grad()
        model(share(batch.double())).square().mean().backward()
        optimizer.step()
    return [parameter.detach() for parameter in net.parameters()]


def data_parallel():
    alone = train(lambda net: net, lambda batch: batch)
    own = slice(RANK * 4, RANK * 4 + 4)
    together = train(DistributedDataParallel, lambda batch: batch[own])
    for one, other in zip(alone, together):
        assert torch.allclose(one, other, rtol=1e-12, atol=1e-12)
    model = DistributedDataParallel(Net(), find_unused_parameters=True, gradient_as_bucket_view=True)
    for batch in batches():
        model(batch[own]).sum().backward()
    grad = model.module.last.weight.grad
    of_all = [torch.empty_like(grad) for _ in range(SIZE)]
    dist.all_gather(of_all, grad)
    for other in of_all:
        same(other, grad)
    low_rank = powerSGD_hook.PowerSGDState(None, 1, start_powerSGD_iter=2)
    for state, hook in ((None, default_hooks.fp16_compress_hook),
                        (low_rank, powerSGD_hook.powerSGD_hook)):
        model = DistributedDataParallel(nn.Linear(6, 3))
        model.register_comm_hook(state, hook)
        for batch in batches():
            model(batch[own]).sum().backward()


def fully_sharded():
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import DTensor

    def wrap(net):
        for layer in net:
            fully_shard(layer)
        return fully_shard(net)
    alone = train(lambda net: net, lambda batch: batch)
    own = slice(RANK * 4, RANK * 4 + 4)
    sharded = train(wrap, lambda batch: batch[own])
    for one, other in zip(alone, sharded):
        whole = other.full_tensor() if isinstance(other, DTensor) else other
        assert torch.allclose(one, whole, rtol=1e-12, atol=1e-12)


def errors():
    # Ranks that pass different shapes
    group = dist.new_group()
    raises(dist.DistBackendError, "rank|3 x khoroFloat32|4 x khoroFloat32",
           lambda: (dist.all_reduce(torch.ones(3 if RANK == 0 else 4), group=group),
                    dist.barrier(group)))
    # One that does not call
    group = dist.new_group(timeout=SOON)
    if RANK != SIZE - 1:
        raises(dist.DistBackendError, f"rank {SIZE - 1}|did not call it|allreduce #1|Timed out",
               dist.all_reduce, torch.ones(3), group=group)
        raises(dist.DistBackendError, f"rank {SIZE - 1}",
               lambda: dist.all_reduce(torch.ones(3), group=group, async_op=True).wait())
    else:
        time.sleep(1.5)
    # A deadline of a call's own is that of no other
    group = dist.new_group()
    dist.barrier(group, timeout=timedelta(seconds=2))
    if RANK == 0:
        time.sleep(3)
    for _ in range(2):
        dist.all_reduce(torch.ones(3), group=group)
    if RANK != SIZE - 1:
        raises(dist.DistBackendError, f"rank {SIZE - 1}|barrier|Timed out", dist.barrier, group,
               timeout=SOON)
    else:
        time.sleep(1.5)
    # Arguments that are not good change nothing
    refused = khoro.InvalidArgument
    raises(refused, "sum", dist.all_reduce, torch.ones(3).to_sparse(), dist.ReduceOp.MAX)
    raises(refused, "int16", dist.all_reduce, torch.ones(3, dtype=torch.int16))
    raises(refused, "times the first", dist.all_gather_into_tensor, torch.empty(SIZE * 3 + 1),
           torch.ones(3))
    raises(refused, "one for each rank", dist.all_gather, [torch.empty(3)] * (SIZE + 1), torch.ones(3))
    dist.barrier()


CALLS = [reductions, tensors_in_any_layout, gathers, objects, coalesced, messages, groups, futures,
         functional_calls, data_parallel, fully_sharded, errors]


def main():
    # All ranks have one parent, the launcher.
    meeting = f"file://{tempfile.gettempdir()}/khoro-torch-calls-{os.getppid()}-"
    dist.init_process_group("khoro", init_method=meeting + "1", timeout=timedelta(seconds=60),
                            rank=RANK, world_size=SIZE)
    assert dist.get_backend() == "khoro"
    for call in CALLS:
        if sys.argv[1:] and call.__name__ not in sys.argv[1:]:
            continue
        begin = time.monotonic()
        call()
        if RANK == 0:
            print(f"{call.__name__}: {time.monotonic() - begin:.1f} s", flush=True)
    dist.destroy_process_group()
    # Again, and beside another backend.
    for number, (name, other) in enumerate((("khoro", "gloo"), ("gloo", "khoro")), 2):
        dist.init_process_group(name, init_method=f"{meeting}{number}", rank=RANK, world_size=SIZE,
                                timeout=timedelta(seconds=60))
        beside = dist.new_group(backend=other)
        assert dist.get_backend() == name and dist.get_backend(beside) == other
        for group in (None, beside):
            tensor = mine(3)
            dist.all_reduce(tensor, group=group)
            same(tensor, every(3).sum(0))
        dist.destroy_process_group()


if __name__ == "__main__" and SIZE > 1:
    main()
