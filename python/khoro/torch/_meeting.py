# SPDX-License-Identifier: Apache-2.0
"""Ranks of a process group meet over the Store that it was given."""
from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import khoro
from khoro._errors import Timeout


class Exchange:
    """Gathers bytes through a Store: rank 0 collects what the ranks give, and gives it to all.

    Another thread may be in the Store at any time, which serves one at a time: it is asked, and not
    waited in.
    """

    def __init__(self, store: Any, name: str, rank: int, size: int, timeout: timedelta) -> None:
        self._store, self._name, self._rank, self._size = store, name, rank, size
        self._timeout = timeout.total_seconds()
        self._round = 0

    def __call__(self, mine: bytes) -> bytes:
        self._round += 1
        end = time.monotonic() + self._timeout
        place = f"{self._name}/{self._round}"
        if self._rank == 0:
            parts = [mine] + [self._get(f"{place}/{rank}", end, f"rank {rank}")
                              for rank in range(1, self._size)]
            if self._size > 1:
                self._store.set(f"{place}/all", b"".join(parts))
            return b"".join(parts)
        self._store.set(f"{place}/{self._rank}", mine)
        return self._get(f"{place}/all", end, "rank 0")

    def _get(self, key: str, end: float, who: str) -> bytes:
        pause = 0.0002
        while not self._store.check([key]):
            if time.monotonic() > end:
                raise Timeout(f"the process group could not be made: {who} of {self._size} had not "
                              f"come after {self._timeout:g} s; look at what it does instead")
            time.sleep(pause)
            pause = min(pause * 1.5, 0.02)
        return self._store.get(key)


def meet(store: Any, name: str, rank: int, size: int, timeout: timedelta) -> khoro.Communicator:
    """A communicator of the ranks that name the same meeting of a Store."""
    deadline = f"{max(1, min(round(timeout.total_seconds() * 1000), 604_800_000))}ms"
    settings = {"KHORO_DEADLINE": deadline, "KHORO_INIT_DEADLINE": deadline}
    return khoro.over(Exchange(store, name, rank, size, timeout), size, rank, settings)
