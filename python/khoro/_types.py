# SPDX-License-Identifier: Apache-2.0
"""Element types and reductions, with the numbers of the C face."""
from __future__ import annotations

import enum
from typing import Any


class DType(enum.IntEnum):
    """What Khoro can reduce. Other types can be moved, as bytes."""

    INT8 = 0
    UINT8 = 1
    INT32 = 2
    UINT32 = 3
    INT64 = 4
    UINT64 = 5
    FLOAT16 = 6
    FLOAT32 = 7
    FLOAT64 = 8
    BFLOAT16 = 9
    FLOAT8_E4M3FN = 10
    FLOAT8_E5M2 = 11

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return _BYTES[self]

    @property
    def numpy(self) -> Any:
        """NumPy's type; that of the small floats is of the package ml_dtypes, which must be there."""
        import numpy

        if self < DType.BFLOAT16:
            return numpy.dtype(self.name.lower())
        import ml_dtypes

        return numpy.dtype(getattr(ml_dtypes, self.name.lower()))


_BYTES = dict(zip(DType, (1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1)))


class Op(enum.IntEnum):
    """How elements of the ranks become one.

    AVG divides the sum by the number of ranks once, toward zero for integers. MIN and MAX of a NaN
    are NaN. Integers wrap. BAND, BOR and BXOR are of the bits of integers.
    """

    SUM = 0
    PROD = 1
    MAX = 2
    MIN = 3
    AVG = 4
    BAND = 16
    BOR = 17
    BXOR = 18
