# SPDX-License-Identifier: Apache-2.0
"""Handwritten digits, learned by DistributedDataParallel on as many ranks as the launcher starts:

    khoro run -n 2 python examples/digits_ddp.py
    torchrun --nproc-per-node 2 examples/digits_ddp.py
    mpirun -n 2 python examples/digits_ddp.py

Each rank takes its share of every batch, so the loss of each step must be that of one process which
takes the whole batch; rank 0 trains that one too, and compares. With --compare the ranks learn the
same on Gloo, in the same run. Needs torch and scikit-learn.
"""
import argparse
import os
import sys
import time

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel

TOLERANCE = 1e-4  # of a step's loss, relative: sums in another order round in another way
ROUNDS = 3  # of a comparison; the median of their seconds is printed
BATCH, LEARNED = 64, 1536  # of 1,797 digits; the others test what was learned


# quote: begin join
def join(backend: str) -> None:
    """Under khoro run and torchrun torch finds the ranks; mpirun tells it nothing that it reads, so
    Khoro finds them, and they agree on a store."""
    if "RANK" in os.environ:
        return dist.init_process_group(backend)
    import khoro
    import numpy
    with khoro.world() as world:
        store = dist.TCPStore("127.0.0.1", 0, world.size, True, wait_for_workers=False) \
            if world.rank == 0 else None
        port = world.broadcast(numpy.array([store.port if store else 0]))
        store = store or dist.TCPStore("127.0.0.1", int(port[0]), world.size, False)
        dist.init_process_group(backend, store=store, rank=world.rank, world_size=world.size)
# quote: end


def make_model() -> nn.Module:
    torch.manual_seed(1)  # on all ranks alike
    return nn.Sequential(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(),
                         nn.Conv2d(32, 64, 3, stride=2, padding=1), nn.ReLU(),
                         nn.Flatten(), nn.Linear(1024, 128), nn.ReLU(), nn.Linear(128, 10))


def train(model: nn.Module, images: torch.Tensor, labels: torch.Tensor, epochs: int, rank: int,
          size: int) -> "tuple[torch.Tensor, float]":
    """The loss of each step on this rank's share, and the seconds of all but the first step."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    shuffled = torch.Generator().manual_seed(2)
    losses = []
    begin = 0.0
    for _ in range(epochs):
        for batch in torch.randperm(LEARNED, generator=shuffled).split(BATCH):
            share = batch[rank::size]
            loss = nn.functional.cross_entropy(model(images[share]), labels[share])
            optimizer.zero_grad()
            loss.backward()  # DDP averages the gradients of all ranks meanwhile
            optimizer.step()
            losses.append(loss.detach())
            begin = begin or time.perf_counter()
    return torch.stack(losses), time.perf_counter() - begin


def train_on(group: dist.ProcessGroup, images: torch.Tensor, labels: torch.Tensor,
             epochs: int) -> "tuple[nn.Module, torch.Tensor, float]":
    """What was learned, and the loss of all ranks in each step."""
    model = make_model()
    losses, seconds = train(DistributedDataParallel(model, process_group=group), images, labels,
                            epochs, dist.get_rank(), dist.get_world_size())
    dist.all_reduce(losses, group=group)  # equal shares: the mean of the ranks' means
    return model, losses / dist.get_world_size(), seconds


def main() -> int:
    parser = argparse.ArgumentParser(description="Learns digits by DistributedDataParallel.")
    parser.add_argument("--backend", default="khoro", help="of torch.distributed (khoro)")
    parser.add_argument("--compare", action="store_true", help="learn the same on Gloo, too")
    parser.add_argument("--epochs", type=int, default=20)
    options = parser.parse_args()
    torch.set_num_threads(1)  # for each rank
    if options.backend == "khoro":
        import khoro.torch  # noqa: F401: makes the backend known
    join(options.backend)
    rank, size = dist.get_rank(), dist.get_world_size()
    if BATCH % size:
        raise SystemExit(f"a batch of {BATCH} digits has no equal shares for {size} ranks")

    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target)
    groups = {options.backend: dist.group.WORLD}
    if options.compare:
        groups["gloo"] = dist.new_group(backend="gloo")
    learned: dict = {}
    for name, group in list(groups.items()) * (ROUNDS if options.compare else 1):  # by turns
        model, losses, seconds = train_on(group, images, labels, options.epochs)
        learned.setdefault(name, []).append((seconds, losses, model))
    dist.barrier()
    dist.destroy_process_group()
    if rank > 0:
        return 0

    alone = make_model()
    expected, seconds = train(alone, images, labels, options.epochs, 0, 1)
    print(f"{size} rank{'s' * (size > 1)}, {len(expected)} steps of {BATCH} digits")
    print("by             seconds  last loss  digits known  largest difference of a loss")
    print(f"one process    {seconds:7.2f}  {expected[-1]:9.6f}  {known(alone, images, labels):11.2%}")
    far = False
    for name, rounds in learned.items():
        seconds, losses, model = sorted(rounds, key=lambda each: each[0])[len(rounds) // 2]
        difference = ((losses - expected) / expected).abs().max().item()
        far = far or not difference <= TOLERANCE
        print(f"{name:13}  {seconds:7.2f}  {losses[-1]:9.6f}  {known(model, images, labels):11.2%}  "
              f"{difference:.1e}, at most {TOLERANCE:.0e}")
    return int(far)


def known(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> float:
    """The share of the digits not learned from that the model tells right."""
    with torch.no_grad():
        return (model(images[LEARNED:]).argmax(1) == labels[LEARNED:]).float().mean().item()


if __name__ == "__main__":
    sys.exit(main())
