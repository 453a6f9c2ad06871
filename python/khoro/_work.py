# SPDX-License-Identifier: Apache-2.0
"""Work that goes on behind the caller's back."""
from __future__ import annotations

import itertools
import os
import threading
from typing import Any, Callable, Generator, Generic, TypeVar

from khoro import _core
from khoro._errors import Error, of_result

Result = TypeVar("Result")


class Work(Generic[Result]):
    """A call that was begun with ``wait=False``; ``await`` it, or ask and wait. Thread-safe.

    Its arrays are kept until it has ended, also if nobody keeps the Work.
    """

    __slots__ = ("_event", "_held", "_result", "_error", "_lock", "__weakref__")

    def __init__(self, stream: int, result: Result, held: Any) -> None:
        self._lock = threading.Lock()
        self._error: Error | None = None
        self._result = result
        self._held = held
        self._event = _core.event_create()
        _core.event_record(self._event, stream)

    def wait(self, timeout: float | None = None) -> Result:
        """Blocks until it has ended, at most for ``timeout`` seconds, and returns its array.

        Raises TimeoutError if the time was over first: it goes on then; and what the call failed
        with. A signal interrupts the waiting, not the work.
        """
        event = self._event
        if event:
            try:
                ended = _core.event_wait(event, -1 if timeout is None else int(timeout * 1000))
            except Error as error:
                if self._event:  # else another thread was faster, and knows why
                    self._end(error)
            else:
                if not ended:
                    raise TimeoutError(f"not done within {timeout} s; it goes on")
                self._end(None)
        if self._error:
            raise self._error
        return self._result

    def done(self) -> bool:
        """Whether it has ended, well or not."""
        event = self._event
        if event:
            try:
                if not _core.event_query(event):
                    return False
                self._end(None)
            except Error as error:
                self._end(error)
        return True

    def exception(self) -> Error | None:
        """What it failed with; None if it has not."""
        return self._error if self.done() else None

    def add_done_callback(self, callback: Callable[["Work[Result]"], Any]) -> None:
        """Has ``callback(work)`` called once it has ended, by a thread of Khoro's for callbacks;
        at once if it has ended already. It may call Khoro, and wait for other work."""
        with self._lock:
            if self._event:
                return _Watch.of_process().add(self._event, self, callback)
        callback(self)

    def __await__(self) -> Generator[Any, None, Result]:
        import asyncio  # which takes longer to import than all else; who awaits has it

        loop = asyncio.get_running_loop()
        future = loop.create_future()

        def end() -> None:
            if not future.cancelled():
                future.set_result(None)

        self.add_done_callback(lambda work: loop.call_soon_threadsafe(end))
        yield from future
        return self.wait()

    def _end(self, error: Error | None) -> None:
        with self._lock:
            event, self._event = self._event, 0
            if not event:
                return
            self._error = error
            self._held = None
        _core.event_destroy(event)


class _Watch:
    """Threads of Python's that call back: one waits for what completes next, and another one takes
    its place while it calls, since a callback may wait for other work."""

    _one: "_Watch | None" = None
    _making = threading.Lock()

    def __init__(self) -> None:
        self._keys = itertools.count(1)
        self._waiting: dict[int, tuple[Work[Any], Callable[[Work[Any]], Any]]] = {}
        self._lock = threading.Lock()
        self._idle = 0
        self._be_served()

    @classmethod
    def of_process(cls) -> "_Watch":
        with cls._making:
            if cls._one is None:
                cls._one = cls()
            return cls._one

    def add(self, event: int, work: Work[Any], callback: Callable[[Work[Any]], Any]) -> None:
        key = next(self._keys)
        self._waiting[key] = (work, callback)
        _core.watch(event, key)

    def _be_served(self) -> None:
        with self._lock:
            if self._idle > 0:
                return
            self._idle += 1
        threading.Thread(target=self._serve, name="khoro-callbacks", daemon=True).start()

    def _serve(self) -> None:
        while True:
            key, result, words = _core.next_completed()
            with self._lock:
                self._idle -= 1
            self._be_served()
            work, callback = self._waiting.pop(key)
            work._end(of_result(result, words) if result else None)
            try:
                callback(work)
            except Exception as error:
                threading.excepthook(threading.ExceptHookArgs(
                    (type(error), error, error.__traceback__, threading.current_thread())))
            del work, callback
            with self._lock:
                if self._idle > 1:
                    return
                self._idle += 1


def _forget_threads() -> None:
    """A child that was forked has none of them."""
    _Watch._one = None
    _Watch._making = threading.Lock()


os.register_at_fork(after_in_child=_forget_threads)
