# SPDX-License-Identifier: Apache-2.0
"""A barrier over the Store, for finding out who does not come."""
from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import torch.distributed as dist


def monitored_barrier(store: Any, number: int, rank: int, size: int, timeout: timedelta,
                      wait_all_ranks: bool) -> None:
    """In the words that Gloo has for it, which programs look for."""
    place = f"khoro/monitored/{number}"
    seconds = timeout.total_seconds()
    end = time.monotonic() + seconds
    if rank != 0:
        store.set(f"{place}/{rank}", b"here")
        if not _await(store, f"{place}/over", end):
            raise dist.DistBackendError(
                f"Rank {rank} successfully reached monitoredBarrier, but received errors while waiting "
                f"for send/recv from rank 0: nothing came within {seconds:g} s, since it or another "
                f"rank has not come to monitored barrier #{number}")
        return
    missing = []
    for other in range(1, size):
        if seconds <= 0:
            raise dist.DistBackendError(f"Rank 0 timed out in monitoredBarrier #{number} after 0 s")
        if not _await(store, f"{place}/{other}", end):
            missing.append(other)
            if not wait_all_ranks:
                break
    if missing:
        ranks = ", ".join(map(str, missing))
        raise dist.DistBackendError(
            f"Rank{'s' if len(missing) > 1 else ''} {ranks} failed to pass monitoredBarrier #{number} "
            f"of {size} ranks in {round(seconds * 1000)} ms; look at what they do instead")
    store.set(f"{place}/over", b"all")


def _await(store: Any, key: str, end: float) -> bool:
    pause = 0.0005
    while not store.check([key]):
        if time.monotonic() > end:
            return False
        time.sleep(pause)
        pause = min(pause * 1.5, 0.02)
    return True
