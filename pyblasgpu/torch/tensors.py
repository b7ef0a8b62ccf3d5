"""Functions of tensors that the formulas of the table use."""

from __future__ import annotations

from typing import Any

import torch
from torch import _C, Tensor

from ..operators.arrays import Arrays
from .memory import adjoint

__all__ = ["COMPUTED", "TENSORS"]

#: PyTorch's errors about losses that depend on phases.
_PHASES = {
    "linalg_eigh_backward": (
        "The eigenvectors in the complex case are specified up to multiplication by e^{i phi}. The specified "
        "loss function depends on this quantity, so it is ill-defined."
    ),
    "svd_backward": (
        "The singular vectors in the complex case are specified up to multiplication by e^{i phi}. The "
        "specified loss function depends on this phase term, making it ill-defined."
    ),
}


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

    def check_phases(self, name: str, one: Tensor, other: Any = None) -> None:
        if type(one) is not Tensor or not one.is_complex() or _C._are_functorch_transforms_active():
            return  # it has no values yet
        one = one.detach().imag
        other = torch.zeros_like(one) if other is None else -other.detach().imag
        if not torch.allclose(one, other, rtol=1e-2, atol=1e-2):
            raise RuntimeError(f"{name}: {_PHASES[name]}")


class _Computed(Tensors):
    """Functions within a computation, where no kernel resolves a lazy conjugation under a mode."""

    def adjoint(self, x: Tensor) -> Tensor:
        return adjoint(x)


TENSORS, COMPUTED = Tensors(), _Computed()
