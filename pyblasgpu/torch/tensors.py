"""Functions of tensors that the formulas of the table use."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..operators.arrays import Arrays
from .memory import adjoint

__all__ = ["COMPUTED", "TENSORS"]


class Tensors(Arrays):
    """PyTorch's functions, and its operators of the table as attributes."""

    def tril(self, x: Tensor, k: int = 0) -> Tensor:
        return x.tril(k)

    def triu(self, x: Tensor, k: int = 0) -> Tensor:
        return x.triu(k)

    def diagonal(self, x: Tensor) -> Tensor:
        return x.diagonal(dim1=-2, dim2=-1)

    def embedded(self, diagonal: Tensor) -> Tensor:
        return diagonal.diag_embed()

    def concatenated(self, arrays: Any, axis: int) -> Tensor:
        return torch.cat(arrays, dim=axis)

    def zeros(self, shape: Any, like: Tensor) -> Tensor:
        return like.new_zeros(shape, dtype=like.dtype.to_real())

    def converted(self, x: Tensor, like: Tensor) -> Tensor:
        return x.to(like.dtype)

    def is_complex(self, x: Tensor) -> bool:
        return x.is_complex()

    def adjoint(self, x: Tensor) -> Tensor:
        return x.mH


class _Computed(Tensors):
    """Functions within a computation, where no kernel resolves a lazy conjugation under a mode."""

    def adjoint(self, x: Tensor) -> Tensor:
        return adjoint(x)


TENSORS, COMPUTED = Tensors(), _Computed()
