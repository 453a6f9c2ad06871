# SPDX-License-Identifier: Apache-2.0
"""Khoro: collective communication between the ranks of a job.

    import khoro, numpy

    with khoro.world() as comm:                       # the ranks that `khoro run` started
        total = comm.allreduce(numpy.ones(3, "float32"))

Ranks are processes, threads, or both. Arrays are NumPy's, or anything with the buffer protocol or
DLPack on the processor, and are not copied.
"""
from khoro import _core
from khoro._arrays import shared_array
from khoro._errors import (Aborted, DeviceError, Error, InternalError, InvalidArgument, InvalidUsage,
                           Mismatch, NoQuorum, OutOfMemory, PeerDied, RemoteError, Revoked,
                           SystemFailure, Timeout)
from khoro._group import Group, group
from khoro._ranks import join, over, threads, unique_id, world
from khoro._types import DType, Op
from khoro._work import Work
from khoro.communicator import Communicator, Reduction, Statistics

SUM, PROD, MIN, MAX, AVG = Op.SUM, Op.PROD, Op.MIN, Op.MAX, Op.AVG
BAND, BOR, BXOR = Op.BAND, Op.BOR, Op.BXOR


def set_trace_file(path: "str | None") -> None:
    """From now on writes when each call begins and ends to a file that Perfetto shows; None ends
    that. Raises InvalidArgument if it cannot be written."""
    _core.set_trace_file(path)


_number = _core.version()
__version__ = f"{_number // 10000}.{_number // 100 % 100}.{_number % 100}"

__all__ = [
    "AVG", "Aborted", "BAND", "BOR", "BXOR", "Communicator", "DType", "DeviceError", "Error",
    "Group", "InternalError", "InvalidArgument", "InvalidUsage", "MAX", "MIN", "Mismatch",
    "NoQuorum", "Op", "OutOfMemory", "PROD", "PeerDied", "Reduction", "RemoteError", "Revoked",
    "SUM", "Statistics", "SystemFailure", "Timeout", "Work", "group", "join", "over",
    "set_trace_file", "shared_array", "threads", "unique_id", "world",
]
