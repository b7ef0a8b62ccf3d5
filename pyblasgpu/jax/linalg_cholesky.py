"""Functions by Cholesky factors and triangles, with the signatures of `jax.numpy` and `jax.scipy`."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from ..types import Trans
from .arrays import ARRAYS, Turned
from .served import NOT_SERVED, check_square, check_system, promoted

__all__ = ["cho_factor", "cho_solve", "cholesky", "inv_quad_logdet", "solve_triangular"]


@partial(jax.jit, static_argnames=("upper", "symmetrize_input"))
def cholesky(a: Any, *, upper: bool = False, symmetrize_input: bool = True) -> jax.Array:
    """Cholesky factor of Hermitian positive definite matrices, as `jax.numpy.linalg.cholesky`.

    Its gradient is computed by the reverse mode of the blocked factorization (Murray, arXiv:1602.07527).

    Parameters
    ----------
    a : array, shape (..., n, n)
    upper : bool, default False
        Whether the factor is upper triangular.
    symmetrize_input : bool, default True
        Whether the Hermitian part of `a` is taken, else the triangle that the factor replaces.

    Returns
    -------
    jax.Array, shape (..., n, n)
        NaN where a matrix is not positive definite.

    See Also
    --------
    cho_solve : Solution from the factor.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from pyblasgpu.jax import cholesky
    >>> cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    operands = promoted(a)
    if operands is None:
        return jnp.linalg.cholesky(a, upper=upper, symmetrize_input=symmetrize_input)
    (a,) = operands
    check_square("cholesky", "a", a)
    return _factor(ARRAYS.hermitian_part(a) if symmetrize_input else a, upper)


def _factor(a: Any, upper: bool) -> jax.Array:
    """Return the factor; NaN where a matrix is not positive definite."""
    factor, info = ARRAYS.cholesky_ex(a, upper)
    return jnp.where(info[..., None, None] == 0, factor, jnp.nan)


@partial(jax.jit, static_argnames=("lower",))
def _cho_factor(a: Any, lower: bool) -> jax.Array:
    operands = promoted(a)
    if operands is None:
        return jax.scipy.linalg.cho_factor(a, lower)[0]
    check_square("cho_factor", "a", operands[0])
    return _factor(operands[0], not lower)


def cho_factor(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[jax.Array, bool]:
    """Cholesky factor and its triangle, as `jax.scipy.linalg.cho_factor`.

    Parameters
    ----------
    a : array, shape (..., n, n)
        Hermitian positive definite matrices, of which one triangle is read.
    lower : bool, default False
        Which triangle.
    overwrite_a, check_finite : bool
        Without effect, as in JAX.

    Returns
    -------
    c : jax.Array, shape (..., n, n)
        The factor, with zeros in the other triangle; NaN where a matrix is not positive definite.
    lower : bool

    See Also
    --------
    cho_solve : Solution from both.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from pyblasgpu.jax import cho_factor
    >>> cho_factor(jnp.array([[4.0, 2.0], [2.0, 5.0]]), lower=True)
    (Array([[2., 0.],
           [1., 2.]], dtype=float32), True)
    """
    return _cho_factor(a, lower=bool(lower)), lower


@partial(jax.jit, static_argnames=("lower",))
def _cho_solve(c: Any, b: Any, lower: bool) -> jax.Array:
    operands = promoted(c, b)
    if operands is None:
        return jax.scipy.linalg.cho_solve((c, lower), b)
    c, right = operands
    columns = right[..., None] if right.ndim == 1 else right
    check_system("cho_solve", "c", c, columns)
    x = ARRAYS.cholesky_solve(columns, c, not lower)
    return x if columns is right else x[..., 0]


def cho_solve(
    c_and_lower: tuple[Any, bool], b: Any, overwrite_b: bool = False, check_finite: bool = True
) -> jax.Array:
    """Solution x of ``a x = b`` from the Cholesky factor of a, as `jax.scipy.linalg.cho_solve`.

    Parameters
    ----------
    c_and_lower : tuple of (array, bool)
        The results of `cho_factor`.
    b : array, shape (..., n, k) or (n,)
    overwrite_b, check_finite : bool
        Without effect, as in JAX.

    Returns
    -------
    jax.Array

    See Also
    --------
    cho_factor : The factor.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from pyblasgpu.jax import cho_solve
    >>> cho_solve((jnp.array([[2.0, 0.0], [1.0, 2.0]]), True), jnp.array([8.0, 14.0]))
    Array([0.75, 2.5 ], dtype=float32)
    """
    c, lower = c_and_lower
    return _cho_solve(c, b, lower=bool(lower))


@partial(jax.jit, static_argnames=("trans", "lower", "unit"))
def _solve_triangular(a: Any, b: Any, trans: Trans, lower: bool, unit: bool) -> jax.Array:
    operands = promoted(a, b)
    if operands is None:
        return jax.scipy.linalg.solve_triangular(a, b, trans.value, lower, unit)
    a, right = operands
    columns = right[..., None] if right.ndim == 1 else right
    check_system("solve_triangular", "a", a, columns)
    if trans is not Trans.NO:
        is_complex = jnp.issubdtype(a.dtype, jnp.complexfloating)
        a, lower = a.mT if trans is Trans.TRANS and is_complex else Turned(a), not lower
    x = ARRAYS.trsm(a, columns, 1, True, lower, unit)
    return x if columns is right else x[..., 0]


def solve_triangular(
    a: Any,
    b: Any,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    debug: Any = None,
    check_finite: bool = True,
) -> jax.Array:
    """Solution x of ``op(a) x = b`` with triangles a, as `jax.scipy.linalg.solve_triangular`.

    Parameters
    ----------
    a : array, shape (..., n, n)
        Triangles; the other one is not read.
    b : array, shape (..., n, k) or (n,)
    trans : {0, 1, 2} or {'N', 'T', 'C'}, default 0
        The op: the matrix itself, its transpose, its conjugate transpose.
    lower : bool, default False
        Which triangle.
    unit_diagonal : bool, default False
        Whether the diagonal of `a` is taken as ones.
    overwrite_b, debug, check_finite
        Without effect, as in JAX.

    Returns
    -------
    jax.Array

    See Also
    --------
    cho_solve : Solution from a Cholesky factor.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from pyblasgpu.jax import solve_triangular
    >>> solve_triangular(jnp.array([[2.0, 0.0], [1.0, 2.0]]), jnp.array([4.0, 4.0]), lower=True)
    Array([2., 1.], dtype=float32)
    """
    parsed = Trans.parse(trans, "solve_triangular", "trans")
    return _solve_triangular(a, b, trans=parsed, lower=bool(lower), unit=bool(unit_diagonal))


@jax.jit
def inv_quad_logdet(K: Any, y: Any) -> tuple[jax.Array, jax.Array]:
    """``tr(yᴴ K⁻¹ y)`` and ``log det K`` of Hermitian positive definite matrices.

    The logarithm of a Gaussian density is made of both. Its gradient is one inverse from the Cholesky factor
    and a rank-k update, in place of the reverse mode of the factorization.

    Parameters
    ----------
    K : array, shape (..., n, n)
        The lower triangle is read.
    y : array, shape (..., n, k) or (n,)
        Right-hand sides, over which the quadratic form is summed.

    Returns
    -------
    quad, logdet : jax.Array, shape (...)
        Real; NaN where a matrix is not positive definite.

    Raises
    ------
    TypeError
        When the dtype is not served.
    ValueError
        When shapes do not fit.

    See Also
    --------
    cholesky : The factor.

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> from pyblasgpu.jax import inv_quad_logdet
    >>> K, y = jnp.array([[4.0, 2.0], [2.0, 5.0]]), jnp.array([8.0, 14.0])
    >>> inv_quad_logdet(K, y)[0]
    Array(41., dtype=float32)
    >>> jax.grad(lambda K: inv_quad_logdet(K, y)[1])(K)
    Array([[ 0.3125, -0.125 ],
           [-0.125 ,  0.25  ]], dtype=float32)
    """
    operands = promoted(K, y)
    if operands is None:
        raise TypeError(NOT_SERVED.format("inv_quad_logdet"))
    K, right = operands
    columns = right[..., None] if right.ndim == 1 else right
    check_system("inv_quad_logdet", "K", K, columns)
    quad, logdet, _, _, info = ARRAYS.inv_quad_logdet(K, columns)
    return jnp.where(info == 0, quad, jnp.nan), jnp.where(info == 0, logdet, jnp.nan)
