# SPDX-License-Identifier: Apache-2.0
"""Parts that the calls of a group are put together from."""
from __future__ import annotations

from typing import Any, Sequence

import torch
import torch.distributed as dist

from khoro import _core
from khoro.torch._tensors import Tensor, movable, reduction_of, unflatten
from khoro.torch._work import Finish


class Reduction:
    """The numbers of a type and a reduction; one that scales is there for the call alone."""

    def __init__(self, handle: int, op: Any, dtype: torch.dtype) -> None:
        self._handle, self._made = handle, 0
        if op == dist.ReduceOp.PREMUL_SUM:
            self._dtype = reduction_of(dist.ReduceOp.SUM, dtype)[0]
            factor = torch.as_tensor(op.factor).to(dtype).reshape(1)
            self._op = self._made = _core.make_scaled_sum(factor.data_ptr(), self._dtype, 1, handle)
        else:
            self._dtype, self._op = reduction_of(op, dtype)

    def __enter__(self) -> tuple[int, int]:
        return self._dtype, self._op

    def __exit__(self, *_: Any) -> None:
        if self._made:
            _core.destroy_reduction(self._made, self._handle)


def all_of(finishes: Any) -> Finish | None:
    kept = [finish for finish in finishes if finish]
    if not kept:
        return None
    return kept[0] if len(kept) == 1 else lambda: [finish() for finish in kept] and None


def unflattens(got: Tensor, parts: Sequence[Tensor]) -> Finish:
    return lambda: unflatten(got, parts)


def row(counts: Sequence[int], tensor: Tensor) -> tuple[list[int], list[int]]:
    """Counts of elements and their displacements in a row, in the unit of the call."""
    unit = movable(tensor)[0] // tensor.numel() if tensor.numel() else 1
    counts = [count * unit for count in counts]
    places, next_one = [], 0
    for count in counts:
        places.append(next_one)
        next_one += count
    return counts, places
