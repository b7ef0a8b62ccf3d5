"""Least squares, with the signature of `jax.numpy.linalg`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from .level3 import matmul
from .linalg_eigen import svd
from .served import promoted

__all__ = ["lstsq"]


@jax.jit
def _solved(a: Any, b: Any, rcond: Any) -> tuple[Any, Any, Any, Any]:
    """Return the solution for the columns of b, squares of what is left of them, rank, singular values."""
    u, s, vh = svd(a, False)
    counts = s >= rcond * s[:1]
    inverse = jnp.where(counts, 1 / jnp.where(counts, s, 1), 0).astype(a.dtype)
    x = matmul(vh.mT.conj(), inverse[:, None] * matmul(u.mT.conj(), b))
    rest = jnp.abs(b - matmul(a, x))
    return x, (rest * rest).sum(0), counts.sum(), s


def lstsq(
    a: Any, b: Any, rcond: Any = None, *, numpy_resid: bool = False
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Least-squares solution of ``a x = b``, as `jax.numpy.linalg.lstsq`.

    Of all solutions with the least residual it is the one with the least norm.

    Parameters
    ----------
    a : array, shape (m, n)
        A matrix that `svd` takes.
    b : array, shape (m,) or (m, k)
        The right-hand sides.
    rcond : float or array, optional
        Singular values that are less than `rcond` times the largest one count as zero. By default it is the
        roundoff times the larger extent, and the roundoff where it is negative.
    numpy_resid : bool, default False
        Whether residuals are left out as NumPy does: where m <= n, and where the rank is less than n. The
        rank is to be known then, so not under `jax.jit`.

    Returns
    -------
    x : jax.Array, shape (n,) or (n, k)
        The solution.
    resid : jax.Array, shape (1,) or (k,)
        The squared norms of the columns of ``b - a x``.
    rank : jax.Array, shape ()
        How many singular values count.
    s : jax.Array, shape (min(m, n),)
        The singular values in descending order.

    Raises
    ------
    ValueError
        When shapes do not fit.

    See Also
    --------
    svd : The singular values and vectors.
    qr : Factors of matrices of full rank, which take less time.

    Notes
    -----
    Gradients are those of `svd`.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from pyblasgpu.jax import lstsq
    >>> lstsq(jnp.array([[0.0], [2.0]]), jnp.array([1.0, 4.0]))[0]
    Array([2.], dtype=float32)
    """
    operands = promoted(a, b)
    if operands is None or not operands[0].size:
        return jnp.linalg.lstsq(a, b, rcond, numpy_resid=numpy_resid)
    a, b = operands
    if a.ndim != 2 or b.ndim not in (1, 2) or b.shape[0] != a.shape[0]:
        raise ValueError(f"lstsq: a has shape {a.shape} and b {b.shape}; they need as many rows")
    roundoff = jnp.finfo(a.dtype).eps
    share = roundoff * max(a.shape) if rcond is None else jnp.where(rcond < 0, roundoff, rcond)
    right = b[:, None] if b.ndim == 1 else b
    x, resid, rank, s = _solved(a, right, jnp.asarray(share, a.real.dtype))
    if numpy_resid and (a.shape[0] <= a.shape[1] or rank < a.shape[1]):
        resid = jnp.zeros(0)  # of the default dtype, as JAX's
    return (x[:, 0] if b.ndim == 1 else x), resid, rank, s
