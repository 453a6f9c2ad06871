# SPDX-License-Identifier: Apache-2.0
"""Work as torch.distributed asks after it."""
from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any, Callable, Sequence

import torch
import torch.distributed as dist

import khoro
from khoro._errors import Error

Finish = Callable[[], None]


def translated(error: Error, group: str) -> Exception:
    """An error as torch names it; arguments that are not good stay what they are."""
    if isinstance(error, (khoro.InvalidArgument, khoro.InvalidUsage)):
        return error
    title = f"{group}: Timed out by its deadline: " if isinstance(error, khoro.Timeout) else f"{group}: "
    made = dist.DistBackendError(title + str(error))
    made.__cause__ = error
    return made


class Done(dist.Work):
    """Work that had ended when its call returned."""

    def __init__(self, tensors: Sequence[torch.Tensor] = ()) -> None:
        super().__init__()
        self._tensors = list(tensors)

    def wait(self, timeout: timedelta | None = None) -> bool:
        return True

    def is_completed(self) -> bool:
        return True

    def is_success(self) -> bool:
        return True

    def exception(self) -> Exception | None:
        return None

    def synchronize(self) -> None:
        pass

    block_current_stream = synchronize

    def result(self) -> list[torch.Tensor]:
        return self._tensors

    def get_future(self) -> torch.futures.Future:
        future: torch.futures.Future = torch.futures.Future()
        future.set_result(self._tensors)
        return future


class Pending(dist.Work):
    """Work that goes on. `finish` is called once, when it has ended well, before anybody hears of
    it."""

    def __init__(self, inner: Any, tensors: Sequence[torch.Tensor], group: str,
                 finish: Finish | None = None, source: int = -1) -> None:
        super().__init__()
        self._inner = inner
        self._tensors = list(tensors)
        self._group = group
        self._finish = finish
        self._source = source
        self._lock = threading.Lock()

    def _settle(self) -> None:
        if self._finish is None:
            return
        with self._lock:
            finish, self._finish = self._finish, None
            if finish:
                finish()

    def wait(self, timeout: timedelta | None = None) -> bool:
        seconds = timeout.total_seconds() if timeout is not None else 0
        try:
            self._inner.wait(seconds if seconds > 0 else None)
        except Error as error:
            raise translated(error, self._group) from error
        except TimeoutError as error:
            raise dist.DistBackendError(f"{self._group}: {error}") from None
        self._settle()
        return True

    def synchronize(self) -> None:
        self.wait()

    block_current_stream = synchronize

    def is_completed(self) -> bool:
        if not self._inner.done():
            return False
        if self._inner.exception() is None:
            self._settle()
        return True

    def is_success(self) -> bool:
        return self.is_completed() and self._inner.exception() is None

    def exception(self) -> Exception | None:
        error = self._inner.exception()
        return translated(error, self._group) if error else None

    def result(self) -> list[torch.Tensor]:
        return self._tensors

    def source_rank(self) -> int:
        return self._source

    _source_rank = source_rank

    def get_future(self) -> torch.futures.Future:
        future: torch.futures.Future = torch.futures.Future()

        def tell(inner: Any) -> None:
            error = self.exception()
            if error:
                future.set_exception(error)
                return
            self._settle()
            future.set_result(self._tensors)

        self._inner.add_done_callback(tell)
        return future


class Several:
    """Works as one, for Pending."""

    def __init__(self, works: Sequence[Any]) -> None:
        self._works = works

    def wait(self, timeout: float | None = None) -> None:
        for work in self._works:
            work.wait(timeout)

    def done(self) -> bool:
        return all(work.done() for work in self._works)

    def exception(self) -> Error | None:
        return next((error for work in self._works if (error := work.exception())), None)

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        if not self._works:
            return callback(self)
        left = [len(self._works)]
        lock = threading.Lock()

        def count(_: Any) -> None:
            with lock:
                left[0] -= 1
                last = left[0] == 0
            if last:
                callback(self)

        for work in self._works:
            work.add_done_callback(count)
