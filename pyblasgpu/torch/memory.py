"""New tensors, triangles, and integers that the routines leave."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

__all__ = [
    "adjoint",
    "by_columns",
    "by_rows",
    "common_batch",
    "copied_by_columns",
    "integers",
    "mirror",
    "where_computed",
]


def adjoint(x: Tensor) -> Tensor:
    """Return the conjugate transpose without a lazy conjugation, which no kernel resolves under a mode."""
    return x.mT.conj_physical() if x.is_complex() else x.mT


def by_rows(like: Tensor, shape: Any) -> Tensor:
    """Return a new row-major tensor."""
    return like.new_empty(shape)


def by_columns(like: Tensor, shape: Any) -> Tensor:
    """Return a new tensor of column-major matrices, as PyTorch's factors are."""
    *batch, rows, cols = shape
    strides, step = [], max(rows, 1) * max(cols, 1)
    for extent in reversed(batch):
        strides.append(step)
        step = step * max(extent, 1)
    return like.new_empty_strided((*batch, rows, cols), (*reversed(strides), 1, max(rows, 1)))


def copied_by_columns(x: Tensor) -> Tensor:
    """Return a column-major copy."""
    return by_columns(x, x.shape).copy_(x)


def mirror(x: Tensor) -> Tensor:
    """Make matrices Hermitian in place, from their lower triangles with a real diagonal; return them."""
    x.tril_()
    if x.is_complex():
        x.diagonal(dim1=-2, dim2=-1).imag.zero_()
    return x.add_(adjoint(x.tril(-1)))


def common_batch(name: str, a: Tensor, b: Tensor) -> Any:
    """Return the broadcast leading dimensions of two operands of one dtype on one device."""
    if a.dtype != b.dtype:
        raise RuntimeError(f"{name}: expected tensors of one dtype, but found {a.dtype} and {b.dtype}")
    if a.device != b.device:
        raise RuntimeError(f"{name}: expected tensors on one device, but found {a.device} and {b.device}")
    batch, other = a.shape[:-2], b.shape[:-2]
    return torch.broadcast_shapes(batch, other) if batch or other else batch


def where_computed(x: Tensor) -> dict[str, Any]:
    """Return the option by which a tensor in host memory is computed by the processor."""
    return {} if x.is_cuda else {"backend": "cpu"}


def integers(values: Tensor, out: Tensor, add: int = 0) -> None:
    """Copy integers that a routine left, plus `add`, to `out`, without waiting for a device."""
    torch.add(values, add, out=out)
