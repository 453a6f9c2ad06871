# SPDX-License-Identifier: Apache-2.0
"""The sum of sparse tensors: what the ranks have, gathered, and added where indices are equal."""
from __future__ import annotations

from typing import Any

import torch

from khoro import _core
from khoro._errors import InvalidArgument
from khoro._types import DType
from khoro.torch._tensors import Tensor, movable


def sum_sparse(handle: int, ranks: int, tensor: Tensor) -> None:
    """Blocks. Ranks may have different numbers of elements; shapes and types are the same."""
    if tensor.layout is not torch.sparse_coo:
        raise InvalidArgument(f"a tensor of layout {tensor.layout}: Khoro sums dense ones, and sparse "
                              "ones of layout torch.sparse_coo; call to_dense() first")
    own = tensor.coalesce()
    mine = torch.tensor([own._nnz()])
    counts = torch.empty(ranks, dtype=torch.int64)
    _core.allgather(mine.data_ptr(), counts.data_ptr(), 1, int(DType.INT64), handle, 0)
    indices = _gather(handle, own.indices().t().contiguous(), counts)
    values = _gather(handle, own.values().contiguous(), counts)
    total = torch.sparse_coo_tensor(indices.t(), values, tensor.shape).coalesce()
    with torch.no_grad():
        tensor.copy_(total)


def _gather(handle: int, rows: Tensor, counts: Tensor) -> Tensor:
    """All rows of all ranks, of which rank r has counts[r]."""
    got = torch.empty((int(counts.sum()), *rows.shape[1:]), dtype=rows.dtype)
    count, dtype = movable(rows)
    width = rows[:1].numel() if rows.shape[0] else got[:1].numel()
    unit = width * (movable(got)[0] // max(got.numel(), 1) or 1)
    sizes = [int(each) * unit for each in counts]
    places = [sum(sizes[:rank]) for rank in range(len(sizes))]
    _core.allgatherv(rows.data_ptr(), count, got.data_ptr(), sizes, places, dtype, handle, 0)
    return got


def is_sum(op: Any) -> bool:
    return hash(op) == hash(torch.distributed.ReduceOp.SUM)
