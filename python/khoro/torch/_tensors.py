# SPDX-License-Identifier: Apache-2.0
"""Tensors, types and reductions of torch in the words of the C face."""
from __future__ import annotations

from typing import Any, Sequence

import torch
from torch.distributed import ReduceOp

from khoro._errors import InvalidArgument
from khoro._types import DType, Op

Tensor = torch.Tensor

_DTYPES = {torch.int8: DType.INT8, torch.uint8: DType.UINT8, torch.int32: DType.INT32,
           torch.int64: DType.INT64, torch.float16: DType.FLOAT16, torch.float32: DType.FLOAT32,
           torch.float64: DType.FLOAT64, torch.bfloat16: DType.BFLOAT16,
           torch.uint32: DType.UINT32, torch.uint64: DType.UINT64,
           torch.float8_e4m3fn: DType.FLOAT8_E4M3FN, torch.float8_e5m2: DType.FLOAT8_E5M2}
NUMBERS = {dtype: int(number) for dtype, number in _DTYPES.items()}
_BYTE = int(DType.UINT8)

# By what ReduceOp says as its hash, the number of its kind: looking it up costs a tenth of comparing.
_OPS = {hash(ReduceOp.SUM): Op.SUM, hash(ReduceOp.PRODUCT): Op.PROD, hash(ReduceOp.MIN): Op.MIN,
        hash(ReduceOp.MAX): Op.MAX, hash(ReduceOp.AVG): Op.AVG, hash(ReduceOp.BAND): Op.BAND,
        hash(ReduceOp.BOR): Op.BOR, hash(ReduceOp.BXOR): Op.BXOR}
OPS = {kind: int(op) for kind, op in _OPS.items()}
# Of bool, each of whose elements is a byte that is 0 or 1.
_BOOL_OPS = {Op.SUM: Op.MAX, Op.PROD: Op.MIN, Op.MIN: Op.MIN, Op.MAX: Op.MAX, Op.BAND: Op.MIN,
             Op.BOR: Op.MAX, Op.BXOR: Op.BXOR}


def check(tensor: Any) -> Tensor:
    """Refuses what has no elements in a row on the processor."""
    if tensor.layout is not torch.strided:
        raise InvalidArgument(f"a tensor of layout {tensor.layout}: Khoro takes dense ones; call "
                              "to_dense() first")
    if tensor.device.type != "cpu":
        raise InvalidArgument(f"a tensor on {tensor.device}: this group is of the processor; pass a "
                              'group for GPUs beside it: dist.new_group(backend="nccl")')
    return tensor


def reduction_of(op: ReduceOp, dtype: torch.dtype) -> tuple[int, int]:
    """Numbers of the type and of the reduction."""
    number, reduction = NUMBERS.get(dtype), _OPS.get(hash(op))
    if dtype is torch.bool:
        number, reduction = _BYTE, _BOOL_OPS.get(reduction) if reduction is not None else None
    if number is None:
        raise InvalidArgument(f"{dtype} cannot be reduced; convert it to one of "
                              + ", ".join(str(known) for known in NUMBERS))
    if reduction is None:
        raise InvalidArgument(f"{op} of {dtype} is no reduction that Khoro has")
    return number, int(reduction)


def movable(tensor: Tensor) -> tuple[int, int]:
    """Number of elements and type for calls that only move them."""
    number = NUMBERS.get(tensor.dtype)
    if number is not None:
        return tensor.numel(), number
    return tensor.numel() * tensor.element_size(), _BYTE


def same_type(tensors: Sequence[Tensor], dtype: torch.dtype) -> None:
    for tensor in tensors:
        if tensor.dtype is not dtype:
            raise InvalidArgument(f"tensors of {dtype} and of {tensor.dtype} in one call; they must "
                                  "have one type")


def flat(tensors: Sequence[Tensor]) -> Tensor:
    """The elements of all, one behind the other, in new memory."""
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors])


def unflatten(flat_one: Tensor, tensors: Sequence[Tensor]) -> None:
    """The reverse of flat(), into the tensors."""
    at = 0
    with torch.no_grad():
        for tensor in tensors:
            count = tensor.numel()
            tensor.copy_(flat_one[at:at + count].view(tensor.shape))
            at += count
