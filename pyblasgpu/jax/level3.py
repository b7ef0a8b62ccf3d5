"""Products as functions that JAX compiles, differentiates and maps."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..types import DTYPES, Trans, product_method
from .arrays import ARRAYS, Turned
from .launch import LETTERS
from .served import NOT_SERVED, promoted

__all__ = ["gemm", "matmul"]


@partial(jax.jit, static_argnames=("precision", "preferred_element_type"))
def matmul(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> jax.Array:
    """Product of matrices, vectors and stacks, as `jax.numpy.matmul`.

    Parameters
    ----------
    a, b : array
        The factors; leading dimensions broadcast.
    precision : optional
        See Notes.
    preferred_element_type : dtype, optional
        The dtype of the result.

    Returns
    -------
    jax.Array

    See Also
    --------
    gemm : The BLAS's signature.

    Notes
    -----
    A float32 product has float32's precision, where JAX by default takes TF32. Vectors, other dtypes, and
    calls with `precision` or `preferred_element_type`, are computed by `jax.numpy.matmul`.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from pyblasgpu.jax import matmul
    >>> matmul(jnp.array([[1.0, 2.0], [3.0, 4.0]]), jnp.ones((2, 1)))
    Array([[3.],
           [7.]], dtype=float32)
    """
    operands = promoted(a, b) if jnp.issubdtype(jnp.result_type(a, b), jnp.inexact) else None
    options = precision, preferred_element_type
    if operands is None or options != (None, None) or min(x.ndim for x in operands) < 2:
        return jnp.matmul(a, b, precision=precision, preferred_element_type=preferred_element_type)
    _check_product("matmul", *operands)
    return ARRAYS.gemm(*operands, None, 1, 0, None)


def gemm(
    a: Any,
    b: Any,
    c: Any = None,
    *,
    alpha: Any = 1,
    beta: Any = 0,
    trans_a: str = "N",
    trans_b: str = "N",
    method: str | None = None,
) -> jax.Array:
    """General matrix product: ``alpha op(a) op(b) + beta c``.

    Parameters
    ----------
    a, b : array
        The factors, or stacks of them; leading dimensions broadcast.
    c : array, optional
        Matrix that is added; not read where `beta` is the number 0.
    alpha, beta : number or array, optional
        By default 1 and 0. Numbers of Python are part of a compiled program.
    trans_a, trans_b : {'N', 'T', 'C'}, default 'N'
        The ops: the matrix itself, its transpose, its conjugate transpose.
    method : {'3m', 'tensor'}, optional
        See `pyblasgpu.gemm`; gradients are computed so, too.

    Returns
    -------
    jax.Array

    Raises
    ------
    TypeError
        When the dtype is not served.
    ValueError
        When shapes do not fit, `beta` has no `c` to scale, or the method is unknown.

    See Also
    --------
    matmul : JAX's signature.

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> from pyblasgpu.jax import gemm
    >>> jax.grad(lambda a: gemm(a, a, trans_b="T").sum())(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array([[ 8., 12.],
           [ 8., 12.]], dtype=float32)
    """
    is_added = not (isinstance(beta, (int, float, complex)) and beta == 0)
    if is_added and c is None:
        raise ValueError(f"gemm: beta={beta} needs c, the matrix that it scales")
    operands = promoted(a, b, *([c] if is_added else []))
    if operands is None:
        raise TypeError(NOT_SERVED.format("gemm"))
    a, b, *rest = operands
    method = product_method(method, DTYPES[LETTERS[a.dtype]], "gemm")
    one, other = _op("gemm", "trans_a", a, trans_a), _op("gemm", "trans_b", b, trans_b)
    _check_product("gemm", one, other)
    added = rest[0] if rest else None
    if added is not None:
        _check_added(one, other, added)
    scales = [
        isinstance(x, (int, float)) or (isinstance(x, complex) and _is_complex(a)) for x in (alpha, beta)
    ]
    if all(scales):
        return ARRAYS.gemm(one, other, added, alpha, beta if is_added else 0, method)
    product = alpha * ARRAYS.gemm(one, other, None, 1, 0, method)
    return product + beta * added if added is not None else product


def _is_complex(x: Any) -> bool:
    return bool(jnp.issubdtype(x.dtype, jnp.complexfloating))


def _op(name: str, argument: str, x: Any, trans: Any) -> Any:
    """Return the operand: itself, its transpose or its conjugate transpose."""
    parsed = Trans.parse(trans, name, argument)
    if x.ndim < 2:
        raise ValueError(f"{name}: {argument[-1]} has shape {x.shape}; a matrix, or a stack, is needed")
    if parsed is Trans.NO:
        return x
    return x.mT if parsed is Trans.TRANS and _is_complex(x) else Turned(x)


def _check_product(name: str, a: Any, b: Any) -> None:
    """Raise ValueError unless matrices, or stacks, may be multiplied."""
    try:
        np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        fits = a.shape[-1] == b.shape[-2]
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"{name}: a has shape {a.shape} and b {b.shape}")


def _check_added(a: Any, b: Any, c: Any) -> None:
    """Raise ValueError unless `c` may be added to a product."""
    shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
    try:
        np.broadcast_shapes(shape[:-2], c.shape[:-2])
        fits = c.shape[-2:] == shape[-2:]
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"gemm: c has shape {c.shape}, and the product {shape}")
