"""Matrices that the operators serve; those that they do not are for PyTorch's own functions."""

from __future__ import annotations

from typing import Any

import torch
from torch import _C, Tensor
from torch.autograd import forward_ad

__all__ = [
    "LETTERS",
    "REALS",
    "TRIANGLES",
    "check_info",
    "check_singular",
    "is_watched",
    "refusal",
    "served",
    "serves_system",
]

#: Letters of the dtypes.
LETTERS = {torch.float32: "s", torch.float64: "d", torch.complex64: "c", torch.complex128: "z"}
#: Dtypes of their real numbers, for code that Dynamo traces.
REALS = {dtype: dtype.to_real() for dtype in LETTERS}
#: Whether the lower triangle is read, by PyTorch's names of it.
TRIANGLES = {"L": True, "l": True, "U": False, "u": False}


def refusal(a: Any, b: Any = None, left: bool = True, square: bool = True) -> str | None:
    """Return why the operators do not take `a`, and `b` at this side of it; None if they do."""
    if not isinstance(a, Tensor):
        return "shape"
    shape = a.shape
    if len(shape) < 2 or (square and shape[-1] != shape[-2]):
        return "shape"
    if a.dtype not in LETTERS:
        return "dtype"
    if not (a.is_cuda or a.device.type == "cpu") or a.layout != torch.strided:
        return "device or layout"
    if b is None:
        return None
    if not isinstance(b, Tensor) or b.ndim < 2:
        return "shape"
    if b.dtype != a.dtype or b.device != a.device:
        return "dtype" if b.device == a.device else "device or layout"
    other = b.shape
    if other[-2 if left else -1] != shape[-1]:
        return "shape"
    if len(shape) > 2 and len(other) > 2:
        pairs = zip(reversed(shape[:-2]), reversed(other[:-2]), strict=False)
        if not all(m == n or 1 in (m, n) for m, n in pairs):
            return "shape"
    return None


def served(
    a: Tensor, b: Tensor | None = None, left: bool = True, out: Any = None, square: bool = True
) -> bool:
    """Whether the operators take the matrices `a`, and `b` at this side of them."""
    return out is None and refusal(a, b, left, square) is None


def serves_system(A: Any, B: Any) -> bool:
    """Whether the operators take a system with elements, whose parts fit."""
    if not served(A, square=False) or not isinstance(B, Tensor) or B.dtype != A.dtype or B.device != A.device:
        return False
    if not A.numel() or not B.numel() or not B.ndim:
        return False
    if B.ndim == 1 or B.shape == A.shape[:-1]:
        return B.shape[-1] == A.shape[-2] and (B.ndim > 1 or A.ndim == 2)
    pairs = zip(reversed(A.shape[:-2]), reversed(B.shape[:-2]), strict=False)
    return B.ndim >= 2 and B.shape[-2] == A.shape[-2] and all(m == n or 1 in (m, n) for m, n in pairs)


#: Functions that return whether a mode, a transform or a tracer is to see a call.
_MODES, _FUNCTION_MODES = _C._len_torch_dispatch_stack, _C._len_torch_function_stack
_TRANSFORMS, _TRACER = _C._are_functorch_transforms_active, _C._get_tracing_state


def is_watched() -> bool:
    """Whether a mode, a transform, a tracer or forward differentiation is to see a call."""
    return (
        _MODES() > 0
        or _FUNCTION_MODES() > 0
        or _TRANSFORMS()
        or forward_ad._current_level >= 0
        or _TRACER() is not None
    )


def check_info(info: Tensor, name: str, a: Tensor) -> None:
    """Raise `torch.linalg.LinAlgError` where info is not 0; waits, as PyTorch's own functions do."""
    is_plain = not torch.compiler.is_dynamo_compiling() and type(info) is Tensor and not is_watched()
    # a copy alone, where PyTorch's function launches kernels first
    if a.ndim == 2 and is_plain and not info.item():
        return
    torch._linalg_check_errors(info, name, is_matrix=a.ndim == 2)


def check_singular(info: Tensor, values: Tensor, A: Tensor) -> None:
    """Raise `LinAlgError` where info is not 0; values are NaN where a matrix is not finite, which it says."""
    try:
        check_info(info, "linalg.svd", A)
    except torch.linalg.LinAlgError:
        check_info(torch.where(values.isnan().any(-1), -4, info).int(), "linalg.svd", A)
        raise
