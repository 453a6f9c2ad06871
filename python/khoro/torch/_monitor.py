# SPDX-License-Identifier: Apache-2.0
"""A barrier over the Store, for finding out who does not come."""
from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import torch.distributed as dist


def monitored_barrier(store: Any, number: int, rank: int, size: int, timeout: timedelta,
                      wait_all_ranks: bool) -> None:
    place = f"khoro/monitored/{number}"
    end = time.monotonic() + timeout.total_seconds()
    if rank != 0:
        store.set(f"{place}/{rank}", b"here")
        if not _await(store, f"{place}/over", end):
            raise dist.DistBackendError(
                f"monitored barrier #{number}: rank {rank} heard nothing from rank 0 within "
                f"{timeout.total_seconds():g} s; it has not come, or another rank has not")
        return
    missing = []
    for other in range(1, size):
        if not _await(store, f"{place}/{other}", end):
            missing.append(other)
            if not wait_all_ranks:
                break
    if missing:
        raise dist.DistBackendError(
            f"monitored barrier #{number}: rank(s) {', '.join(map(str, missing))} of {size} did not "
            f"come within {timeout.total_seconds():g} s; look at what they do instead")
    store.set(f"{place}/over", b"all")


def _await(store: Any, key: str, end: float) -> bool:
    pause = 0.0005
    while not store.check([key]):
        if time.monotonic() > end:
            return False
        time.sleep(pause)
        pause = min(pause * 1.5, 0.02)
    return True
