#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an allreduce through torch.distributed takes on Khoro and on Gloo, in one run.

usage: khoro run -n 2 -- python benchmarks/torch/allreduce.py [--most BYTES] [--rounds N]

The backends take turns, so that what else the machine does meets both. Each line has the medians over
the rounds of the slowest rank's time for a call, and their ratio.
"""
import argparse
import statistics
import time

import torch
import torch.distributed as dist

import khoro.torch  # noqa: F401: registers the backend


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--most", type=int, default=64 << 20, metavar="BYTES")
    parser.add_argument("--rounds", type=int, default=9)
    return parser.parse_args()


def seconds_per_call(group, tensor, calls):
    dist.barrier(group)
    begin = time.perf_counter()
    for _ in range(calls):
        dist.all_reduce(tensor, group=group)
    took = torch.tensor([(time.perf_counter() - begin) / calls], dtype=torch.float64)
    dist.all_reduce(took, op=dist.ReduceOp.MAX, group=group)
    return took.item()


def main():
    options = arguments()
    torch.set_num_threads(1)
    dist.init_process_group("khoro")
    groups = {"khoro": dist.group.WORLD, "gloo": dist.new_group(backend="gloo")}
    if dist.get_rank() == 0:
        print(f"# torch {torch.__version__}, {dist.get_world_size()} ranks, float32, sum, in place; "
              f"medians of {options.rounds} rounds\n"
              f"{'bytes':>10} {'khoro us':>12} {'gloo us':>12} {'ratio':>7}")
    size = 4
    while size <= options.most:
        tensor = torch.zeros(size // 4)
        calls = max(3, min(1000, (8 << 20) // size))
        times = {name: [] for name in groups}
        for group in groups.values():
            seconds_per_call(group, tensor, calls)  # what is first is slow
        for _ in range(options.rounds):
            for name, group in groups.items():
                times[name].append(seconds_per_call(group, tensor, calls))
        khoro_us, gloo_us = (statistics.median(times[name]) * 1e6 for name in groups)
        if dist.get_rank() == 0:
            print(f"{size:10} {khoro_us:12.2f} {gloo_us:12.2f} {khoro_us / gloo_us:7.3f}", flush=True)
        size *= 4
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
