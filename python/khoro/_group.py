# SPDX-License-Identifier: Apache-2.0
"""Calls that begin and end together."""
from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from khoro import _core
from khoro._errors import InvalidUsage
from khoro._work import Work

if TYPE_CHECKING:
    from khoro.communicator import Communicator


class _OfThread(threading.local):
    group: "Group | None" = None


_of_thread = _OfThread()


class Group:
    """``with khoro.group():`` what this thread calls within, on any communicators, begins and ends at
    its end.

    Sends and receives in a group need no order: they go on beside each other and beside the
    collectives. Arrays that calls return are filled at the group's end. With ``wait=False`` the group
    does not block at its end but is itself the Work: call its ``wait()``. An exception within drops
    the calls. Groups may lie within each other, and end with the outermost one.
    """

    def __init__(self, wait: bool = True) -> None:
        self._wait = wait
        self._outer: Group | None = None
        self._held: list[Any] = []
        self._communicators: dict[int, Communicator] = {}
        self._works: list[Work[None]] = []

    def __enter__(self) -> "Group":
        self._outer = _of_thread.group
        if self._outer and self._outer._wait != self._wait:
            raise InvalidUsage("a group within another waits, or does not, as the outer one does")
        _core.group_start()
        _of_thread.group = self
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        outer = _of_thread.group = self._outer
        if outer:
            outer._held += self._held
            outer._communicators.update(self._communicators)
            _core.group_end()
            return
        if kind is not None:
            return self._drop()
        _core.group_end()
        if not self._wait:
            held = tuple(self._held)
            self._works = [each._begun(None, held) for each in self._communicators.values()]
        self._held.clear()

    def _drop(self) -> None:
        """Closes the group without making its calls: a plan of them that is never launched."""
        if self._held:
            _core.plan_destroy(_core.plan_create())
        else:
            _core.group_end()

    def _add(self, communicator: "Communicator", held: Any) -> None:
        self._held.append(held)
        self._communicators[communicator._handle] = communicator

    def wait(self, timeout: float | None = None) -> None:
        """As Work.wait, for all calls of a group that did not wait."""
        end = None if timeout is None else time.monotonic() + timeout
        for work in self._works:
            work.wait(None if end is None else max(0.0, end - time.monotonic()))

    def done(self) -> bool:
        """Whether all calls of a group that did not wait have ended."""
        return all(work.done() for work in self._works)


def open_group() -> Group | None:
    """The group that this thread is in."""
    return _of_thread.group


def group(wait: bool = True) -> Group:
    """A group of calls; see Group."""
    return Group(wait)
