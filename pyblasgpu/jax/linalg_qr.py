"""QR factors, with the signature of `jax.numpy.linalg`."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from .arrays import ARRAYS
from .served import promoted

__all__ = ["QRResult", "qr"]


class QRResult(NamedTuple):
    """Result of `qr`.

    Attributes
    ----------
    Q : jax.Array, shape (..., m, k)
    R : jax.Array, shape (..., k, n)

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from pyblasgpu.jax import qr
    >>> qr(jnp.eye(2)).R.shape
    (2, 2)
    """

    Q: jax.Array
    R: jax.Array


@partial(jax.jit, static_argnames=("mode",))
def qr(a: Any, mode: str = "reduced") -> Any:
    """QR factors, as `jax.numpy.linalg.qr`.

    Parameters
    ----------
    a : array, shape (..., m, n)
    mode : {'reduced', 'complete', 'r', 'full', 'raw'}, default 'reduced'
        Whether Q has min(m, n) columns, or m; with 'r' R alone is returned. With others JAX's own function
        computes.

    Returns
    -------
    Q : jax.Array, shape (..., m, min(m, n)) or (..., m, m)
        Orthonormal columns.
    R : jax.Array, shape (..., min(m, n), n) or (..., m, n)
        Upper triangular, with a real diagonal of either sign.

    Raises
    ------
    ValueError
        When `a` is no matrix.

    See Also
    --------
    solve : Solution of square systems.

    Notes
    -----
    The square Q of a tall matrix has no derivative.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from pyblasgpu.jax import qr
    >>> qr(jnp.array([[0.0, 1.0], [2.0, 3.0]])).R
    Array([[-2., -3.],
           [ 0., -1.]], dtype=float32)
    """
    operands = promoted(a)
    if operands is None or mode not in ("reduced", "complete", "r"):
        return jnp.linalg.qr(a, mode=mode)
    (a,) = operands
    if a.ndim < 2:
        raise ValueError(f"qr: a has shape {a.shape}; a matrix, or a stack, is needed")
    q, r = ARRAYS.qr(a, mode == "complete")
    return r if mode == "r" else QRResult(q, r)
