"""Functions by LU factors, with the signatures of `jax.numpy.linalg` and `jax.scipy.linalg`."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ..types import Trans
from .arrays import ARRAYS
from .served import check_square, check_system, promoted

__all__ = ["SlogdetResult", "det", "inv", "logdet", "lu_factor", "lu_solve", "slogdet", "solve"]


@jax.jit
def solve(a: Any, b: Any) -> jax.Array:
    """Solution x of ``a x = b``, as `jax.numpy.linalg.solve`.

    Parameters
    ----------
    a : array, shape (..., n, n)
    b : array, shape (..., n, k) or (n,)

    Returns
    -------
    jax.Array

    See Also
    --------
    lu_solve : Solution from the factors.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from pyblasgpu.jax import solve
    >>> solve(jnp.array([[1.0, 2.0], [2.0, 8.0]]), jnp.array([5.0, 18.0]))
    Array([1., 2.], dtype=float32)
    """
    operands = promoted(a, b)
    if operands is None:
        return jnp.linalg.solve(a, b)
    a, right = operands
    columns = right[..., None] if right.ndim == 1 else right
    check_system("solve", "a", a, columns)
    x = ARRAYS.solve_ex(a, columns, True)[0]
    return x if columns is right else x[..., 0]


@jax.jit
def inv(a: Any) -> jax.Array:
    """Inverse of matrices, as `jax.numpy.linalg.inv`.

    Parameters
    ----------
    a : array, shape (..., n, n)

    Returns
    -------
    jax.Array, shape (..., n, n)

    See Also
    --------
    solve : Solution of a system, which is more accurate than a product with the inverse.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from pyblasgpu.jax import inv
    >>> inv(jnp.array([[1.0, 2.0], [2.0, 8.0]]))
    Array([[ 2.  , -0.5 ],
           [-0.5 ,  0.25]], dtype=float32)
    """
    operands = _square("inv", a)
    return jnp.linalg.inv(a) if operands is None else ARRAYS.inv_ex(*operands)[0]


def _square(name: str, a: Any) -> list[Any] | None:
    """Return square matrices; None where no routine serves them."""
    operands = promoted(a)
    if operands is not None:
        check_square(name, "a", operands[0])
    return operands


@jax.jit
def det(a: Any) -> jax.Array:
    """Determinant of matrices, as `jax.numpy.linalg.det`.

    Parameters
    ----------
    a : array, shape (..., n, n)

    Returns
    -------
    jax.Array, shape (...)

    See Also
    --------
    slogdet : Sign and logarithm, which do not overflow.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from pyblasgpu.jax import det
    >>> det(jnp.array([[1.0, 2.0], [2.0, 8.0]]))
    Array(4., dtype=float32)
    """
    operands = _square("det", a)
    return jnp.linalg.det(a) if operands is None else ARRAYS.det(*operands)[0]


class SlogdetResult(NamedTuple):
    """Result of `slogdet`.

    Attributes
    ----------
    sign : jax.Array, shape (...)
        The sign; of complex matrices a number of absolute value 1.
    logabsdet : jax.Array, shape (...)
        Logarithm of the absolute value.
    """

    sign: jax.Array
    logabsdet: jax.Array


@jax.jit
def slogdet(a: Any) -> SlogdetResult:
    """Sign of determinants, and logarithm of their absolute values, as `jax.numpy.linalg.slogdet`.

    Parameters
    ----------
    a : array, shape (..., n, n)

    Returns
    -------
    SlogdetResult
        Named tuple of `sign` and `logabsdet`, of shape (...).

    See Also
    --------
    logdet : The logarithm alone.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from pyblasgpu.jax import slogdet
    >>> slogdet(jnp.array([[1.0, 2.0], [2.0, 8.0]])).sign
    Array(1., dtype=float32)
    """
    operands = _square("slogdet", a)
    if operands is None:
        return SlogdetResult(*jnp.linalg.slogdet(a))
    return SlogdetResult(*ARRAYS.slogdet(*operands)[:2])


@jax.jit
def logdet(a: Any) -> jax.Array:
    """Logarithm of determinants.

    Parameters
    ----------
    a : array, shape (..., n, n)

    Returns
    -------
    jax.Array, shape (...)
        NaN where a real determinant is negative.

    See Also
    --------
    inv_quad_logdet : Logarithm of the determinant of a positive definite matrix.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from pyblasgpu.jax import logdet
    >>> logdet(2 * jnp.eye(3))
    Array(2.0794415, dtype=float32)
    """
    sign, logabsdet = slogdet(a)
    if jnp.issubdtype(sign.dtype, jnp.complexfloating):
        return logabsdet + jnp.log(sign)
    return jnp.where(sign < 0, jnp.nan, logabsdet)


@jax.jit
def _lu_factor(a: Any) -> tuple[jax.Array, jax.Array]:
    operands = promoted(a)
    if operands is None:
        lu, pivots = jax.scipy.linalg.lu_factor(a)
        return lu, pivots
    if operands[0].ndim < 2:
        raise ValueError(f"lu_factor: a has shape {operands[0].shape}; a matrix, or a stack, is needed")
    found: tuple[jax.Array, jax.Array] = ARRAYS.lu_factor_ex(*operands)[:2]
    return found


def lu_factor(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> tuple[jax.Array, jax.Array]:
    """LU factors with partial pivoting, as `jax.scipy.linalg.lu_factor`.

    Parameters
    ----------
    a : array, shape (..., m, n)
    overwrite_a, check_finite : bool
        Without effect, as in JAX.

    Returns
    -------
    lu : jax.Array, shape (..., m, n)
        U, and below its diagonal L without its diagonal of ones.
    piv : jax.Array of int32, shape (..., min(m, n))
        Row i and row ``piv[i]``, from 0, are interchanged.

    See Also
    --------
    lu_solve : Solution from the factors.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from pyblasgpu.jax import lu_factor
    >>> lu_factor(jnp.array([[1.0, 2.0], [2.0, 8.0]]))[1]
    Array([1, 1], dtype=int32)
    """
    lu, pivots = _lu_factor(a)
    return lu, pivots


@partial(jax.jit, static_argnames=("trans",))
def _lu_solve(lu: Any, piv: Any, b: Any, trans: Trans) -> jax.Array:
    operands = promoted(lu, b)
    if operands is None:
        return jax.scipy.linalg.lu_solve((lu, piv), b, "NTC".index(trans.value))
    lu, right = operands
    columns = right[..., None] if right.ndim == 1 else right
    check_system("lu_solve", "lu", lu, columns)
    piv = jnp.asarray(piv, jnp.int32)
    if piv.shape != lu.shape[:-1]:
        raise ValueError(f"lu_solve: piv has shape {piv.shape}, and lu {lu.shape}")
    if trans is Trans.TRANS:  # aᵀ x = b where aᴴ conj(x) = conj(b)
        x = ARRAYS.lu_solve(lu, piv, columns.conj(), True, True).conj()
    else:
        x = ARRAYS.lu_solve(lu, piv, columns, True, trans is Trans.CONJ)
    return x if columns is right else x[..., 0]


def lu_solve(
    lu_and_piv: tuple[Any, Any],
    b: Any,
    trans: int | str = 0,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> jax.Array:
    """Solution x of ``op(a) x = b`` from the LU factors of a, as `jax.scipy.linalg.lu_solve`.

    Parameters
    ----------
    lu_and_piv : tuple of array
        The results of `lu_factor`.
    b : array, shape (..., n, k) or (n,)
    trans : {0, 1, 2} or {'N', 'T', 'C'}, default 0
        The op: the matrix itself, its transpose, its conjugate transpose.
    overwrite_b, check_finite : bool
        Without effect, as in JAX.

    Returns
    -------
    jax.Array

    See Also
    --------
    lu_factor : The factors.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from pyblasgpu.jax import lu_factor, lu_solve
    >>> lu_solve(lu_factor(jnp.array([[1.0, 2.0], [2.0, 8.0]])), jnp.array([5.0, 18.0]))
    Array([1., 2.], dtype=float32)
    """
    lu, piv = lu_and_piv
    return _lu_solve(lu, piv, b, trans=Trans.parse(trans, "lu_solve", "trans"))
