# SPDX-License-Identifier: Apache-2.0
"""Messages between two ranks, in one direction.

torch lets a program begin sends and receives in any order, beside its collectives, and wait for them
in any other. Calls of one communicator run in the order in which they are made, so each direction of
each pair of ranks that exchanges messages has a communicator of its own, made when it is first used.
"""
from __future__ import annotations

import threading
import time
from datetime import timedelta
from typing import Any, Callable

import torch

import khoro
from khoro import _core
from khoro._errors import Error
from khoro._work import Work
from khoro.torch._meeting import meet
from khoro.torch._tensors import movable


class Message:
    """A message that waits for its link, then for its end. As khoro.Work for who asks."""

    def __init__(self, tensor: torch.Tensor, tag: int) -> None:
        self.tensor, self.tag = tensor, tag
        self._begun = threading.Event()
        self._work: Work[None] | None = None
        self._error: Error | None = None
        self._callbacks: list[Callable[[Any], None]] = []
        self._lock = threading.Lock()

    def begin(self, work: Work[None] | None, error: Error | None = None) -> None:
        with self._lock:
            self._work, self._error = work, error
            callbacks, self._callbacks = self._callbacks, []
        self._begun.set()
        for callback in callbacks:
            self.add_done_callback(callback)

    def wait(self, timeout: float | None = None) -> None:
        begin = time.monotonic()
        while not self._begun.wait(0.2 if timeout is None else min(timeout, 0.2)):
            if timeout is not None and time.monotonic() - begin >= timeout:
                raise TimeoutError(f"not begun within {timeout} s: the other rank has not come; it "
                                   "goes on")
        if self._error:
            raise self._error
        assert self._work
        left = None if timeout is None else max(0.0, timeout - (time.monotonic() - begin))
        self._work.wait(left)

    def done(self) -> bool:
        return self._begun.is_set() and (self._work is None or self._work.done())

    def exception(self) -> Error | None:
        if not self._begun.is_set():
            return None
        return self._work.exception() if self._work else self._error

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        with self._lock:
            if not self._begun.is_set() and self._work is None and self._error is None:
                self._callbacks.append(callback)
                return
        if self._work:
            self._work.add_done_callback(lambda work: callback(self))
        else:
            callback(self)


class Link:
    """One direction of a pair. Thread-safe."""

    def __init__(self, store: Any, name: str, sends: bool, timeout: timedelta) -> None:
        self._sends = sends
        self._lock = threading.Lock()
        self._communicator: khoro.Communicator | None = None
        self._waiting: list[Message] = []
        self._error: Error | None = None
        self._thread = threading.Thread(target=self._meet, args=(store, name, timeout),
                                        name="khoro-link", daemon=True)
        self._thread.start()

    def add(self, tensor: torch.Tensor, tag: int) -> Message:
        message = Message(tensor, tag)
        with self._lock:
            if self._communicator:
                self._begin(message)
            elif self._error:
                message.begin(None, self._error)
            else:
                self._waiting.append(message)
        return message

    def close(self) -> None:
        self._thread.join(timeout=1)
        with self._lock:
            if self._communicator:
                self._communicator.close()

    def abort(self) -> None:
        with self._lock:
            if self._communicator:
                self._communicator.abort()

    def _begin(self, message: Message) -> None:
        communicator = self._communicator
        assert communicator
        function = _core.send if self._sends else _core.recv
        count, dtype = movable(message.tensor)
        try:
            # Messages with tag 0 would not be kept for a later receive.
            function(message.tensor.data_ptr(), count, dtype, 1 if self._sends else 0,
                     message.tag + 1, communicator._handle, communicator._own_stream())
            message.begin(communicator._begun(None, message.tensor))
        except Error as error:
            message.begin(None, error)

    def _meet(self, store: Any, name: str, timeout: timedelta) -> None:
        try:
            made = meet(store, name, 0 if self._sends else 1, 2, timeout)
        except Exception as error:
            failure = error if isinstance(error, Error) else khoro.SystemFailure(str(error))
            with self._lock:
                self._error = failure
                waiting, self._waiting = self._waiting, []
            for message in waiting:
                message.begin(None, failure)
            return
        with self._lock:
            self._communicator = made
            waiting, self._waiting = self._waiting, []
            for message in waiting:
                self._begin(message)
