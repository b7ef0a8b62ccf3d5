"""Arrays that the routines serve; those that they do not are for JAX's own functions."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from .launch import LETTERS

__all__ = ["NOT_SERVED", "check_square", "check_system", "promoted"]

#: The message about another dtype, but for the name of the function.
NOT_SERVED = "{}: float32, float64, complex64 and complex128 are served, and no other dtype"


def promoted(*arrays: Any) -> list[Any] | None:
    """Return arrays of one inexact dtype; None where no routine serves it."""
    found = [jnp.asarray(x) for x in arrays]
    dtype = jnp.result_type(*found)
    if not jnp.issubdtype(dtype, jnp.inexact):
        dtype = jnp.result_type(dtype, jnp.float32 if dtype.itemsize < 8 else float)
    return [x.astype(dtype) for x in found] if np.dtype(dtype) in LETTERS else None


def check_square(name: str, argument: str, a: Any) -> None:
    """Raise ValueError unless `a` is a square matrix, or a stack."""
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"{name}: {argument} has shape {a.shape}; a square matrix, or a stack, is needed")


def check_system(name: str, argument: str, a: Any, b: Any) -> None:
    """Raise ValueError unless matrices `b` fit square matrices `a` as right-hand sides."""
    check_square(name, argument, a)
    if b.ndim < 2 or b.shape[-2] != a.shape[-1]:
        raise ValueError(f"{name}: {argument} has shape {a.shape} and b {b.shape}")
    try:
        np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise ValueError(f"{name}: {argument} has shape {a.shape} and b {b.shape}") from None
