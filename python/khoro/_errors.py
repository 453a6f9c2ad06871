# SPDX-License-Identifier: Apache-2.0
"""An exception for each result of the C face.

``InvalidArgument`` and ``InvalidUsage`` are mistakes of the caller and leave the communicator as it
was. Every other error ends its use, on all ranks; what is left is to close it.
"""
from __future__ import annotations


class Error(Exception):
    """What a call of Khoro failed with; its text says what was wrong, where, and what to do.

    ``result`` is the number that the C face has for it.
    """

    result: int = -1


class DeviceError(Error):
    """A GPU failed."""


class SystemFailure(Error, OSError):
    """The operating system refused something that is needed."""


class InternalError(Error):
    """A fault of Khoro's."""


class InvalidArgument(Error, ValueError):
    """An argument is not good. The communicator is as it was."""


class InvalidUsage(Error, RuntimeError):
    """The call cannot be made now. The communicator is as it was."""


class RemoteError(Error, ConnectionError):
    """Another rank has left, could not take part, or sent what is damaged."""


class Timeout(Error, TimeoutError):
    """The deadline of the communicator has passed; the text names the ranks that were missing."""


class Mismatch(Error):
    """Ranks made different calls; the text names them and the calls."""


class Aborted(Error):
    """A rank has aborted the communicator."""


class Revoked(Error):
    """A rank has revoked the communicator."""


class PeerDied(Error, ConnectionError):
    """The process of another rank has ended."""


class NoQuorum(Error):
    """Too few ranks are left to agree."""


class OutOfMemory(Error, MemoryError):
    """No memory is left for what is needed."""


_CLASSES = {1: DeviceError, 2: SystemFailure, 3: InternalError, 4: InvalidArgument, 5: InvalidUsage,
            6: RemoteError, 8: Timeout, 9: Mismatch, 10: Aborted, 11: Revoked, 12: PeerDied,
            13: NoQuorum, 14: OutOfMemory}
SUCCESS = 0
IN_PROGRESS = 7
for _result, _class in _CLASSES.items():
    _class.result = _result
for _class in (Error, *_CLASSES.values()):
    _class.__module__ = "khoro"  # where users find them, and what a traceback says


def of_result(result: int, words: str) -> Error:
    """The exception of a result, with its words; called by the extension too."""
    error = _CLASSES.get(result, Error)(words)
    error.result = result
    return error
