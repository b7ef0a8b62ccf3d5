"""Functions by eigenvalues and singular values, with the signatures of `jax.numpy.linalg`.

Matrices that are larger than the kernels of the first device have them are computed by JAX's own functions.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .arrays import ARRAYS
from .served import check_square, promoted

__all__ = ["EighResult", "SVDResult", "eigh", "eigvalsh", "matrix_rank", "pinv", "svd", "svdvals"]


class EighResult(NamedTuple):
    """Result of `eigh`.

    Attributes
    ----------
    eigenvalues : jax.Array, shape (..., n)
    eigenvectors : jax.Array, shape (..., n, n)

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from pyblasgpu.jax import eigh
    >>> eigh(jnp.eye(2)).eigenvectors.shape
    (2, 2)
    """

    eigenvalues: jax.Array
    eigenvectors: jax.Array


class SVDResult(NamedTuple):
    """Result of `svd`.

    Attributes
    ----------
    U : jax.Array, shape (..., m, m) or (..., m, k)
    S : jax.Array, shape (..., k)
    Vh : jax.Array, shape (..., n, n) or (..., k, n)

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from pyblasgpu.jax import svd
    >>> svd(jnp.ones((3, 2))).U.shape
    (3, 3)
    """

    U: jax.Array
    S: jax.Array
    Vh: jax.Array


def _hermitian_operands(name: str, a: Any, UPLO: Any, symmetrize_input: bool) -> tuple[Any, bool] | None:
    """Return the matrices, and whether lower triangles are read; None where no routine serves the dtype."""
    if UPLO not in (None, "L", "U"):
        raise ValueError(f"{name}: UPLO={UPLO!r} is none of None, 'L', 'U'")
    operands = promoted(a)
    if operands is None:
        return None
    (a,) = operands
    check_square(name, "a", a)
    return (ARRAYS.hermitian_part(a) if symmetrize_input else a), UPLO != "U"


@partial(jax.jit, static_argnames=("UPLO", "symmetrize_input"))
def eigh(a: Any, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """Eigenvalues and eigenvectors of Hermitian matrices, as `jax.numpy.linalg.eigh`.

    Parameters
    ----------
    a : array, shape (..., n, n)
        Orders to 16384 are computed by this library's kernels where there is a device.
    UPLO : {'L', 'U'}, optional
        The triangle that is read; by default the lower one.
    symmetrize_input : bool, default True
        Whether the mean of `a` and its conjugate transpose is taken first.

    Returns
    -------
    eigenvalues : jax.Array, shape (..., n)
        Real, in ascending order.
    eigenvectors : jax.Array, shape (..., n, n)
        Orthonormal columns.

    Raises
    ------
    ValueError
        When `a` is not square, or `UPLO` is unknown.

    See Also
    --------
    eigvalsh : Eigenvalues alone.

    Notes
    -----
    Results are NaN where a matrix is not finite, or the iteration does not converge. Gradients through
    eigenvectors are finite where eigenvalues are distinct, those of the values always.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from pyblasgpu.jax import eigh
    >>> eigh(jnp.array([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    Array([1., 2.], dtype=float32)
    """
    given = _hermitian_operands("eigh", a, UPLO, symmetrize_input)
    if given is None:
        return EighResult(*jnp.linalg.eigh(a, UPLO, symmetrize_input))
    return EighResult(*ARRAYS.eigh(*given)[:2])


@partial(jax.jit, static_argnames=("UPLO", "symmetrize_input"))
def eigvalsh(a: Any, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> jax.Array:
    """Eigenvalues of Hermitian matrices, as `jax.numpy.linalg.eigvalsh`.

    Parameters
    ----------
    a : array, shape (..., n, n)
        Matrices that `eigh` takes.
    UPLO : {'L', 'U'}, default 'L'
        The triangle that is read.
    symmetrize_input : bool, default True
        Whether the mean of `a` and its conjugate transpose is taken first.

    Returns
    -------
    jax.Array, shape (..., n)
        Real, in ascending order; NaN where a matrix is not finite.

    Raises
    ------
    ValueError
        When `a` is not square, or `UPLO` is unknown.

    See Also
    --------
    eigh : Eigenvectors too.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from pyblasgpu.jax import eigvalsh
    >>> eigvalsh(jnp.array([[2.0, 0.0], [0.0, 1.0]]))
    Array([1., 2.], dtype=float32)
    """
    given = _hermitian_operands("eigvalsh", a, UPLO, symmetrize_input)
    if given is None:
        return jnp.linalg.eigvalsh(a, UPLO, symmetrize_input=symmetrize_input)
    values: jax.Array = ARRAYS.eigvalsh(*given)[0]
    return values


def _matrices(name: str, a: Any) -> Any:
    """Return matrices of a dtype that is served, else None."""
    operands = promoted(a)
    if operands is not None and operands[0].ndim < 2:
        raise ValueError(f"{name}: a has shape {operands[0].shape}; a matrix, or a stack, is needed")
    return operands and operands[0]


@partial(jax.jit, static_argnames=("full_matrices", "compute_uv", "hermitian", "subset_by_index"))
def svd(
    a: Any,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Any:
    """Singular values and vectors, as `jax.numpy.linalg.svd`.

    Parameters
    ----------
    a : array, shape (..., m, n)
        Lesser extents to some hundred are computed by this library's kernels where there is a device.
    full_matrices : bool, default True
        Whether there are m left and n right vectors, else min(m, n) of each.
    compute_uv : bool, default True
        Whether vectors are returned.
    hermitian : bool, default False
        JAX's own function computes such matrices.
    subset_by_index : (int, int), optional
        JAX's own function computes subsets.

    Returns
    -------
    U : jax.Array, shape (..., m, m) or (..., m, k)
        Left vectors in columns.
    S : jax.Array, shape (..., k)
        Singular values in descending order; the only result without `compute_uv`.
    Vh : jax.Array, shape (..., n, n) or (..., k, n)
        Conjugated right vectors in rows.

    Raises
    ------
    ValueError
        When `a` is no matrix.

    See Also
    --------
    svdvals : Singular values alone.

    Notes
    -----
    Results are NaN where a matrix is not finite, or the iteration does not converge. Gradients through
    vectors are finite where singular values are distinct, and not zero in rectangles; those of the values
    always. The vectors that `full_matrices` adds have none.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from pyblasgpu.jax import svd
    >>> svd(jnp.array([[1.0, 0.0], [0.0, 2.0]])).S
    Array([2., 1.], dtype=float32)
    """
    matrices = None if hermitian or subset_by_index is not None else _matrices("svd", a)
    if matrices is None:
        found = jnp.linalg.svd(a, full_matrices, compute_uv, hermitian, subset_by_index)
        return SVDResult(*found) if compute_uv else found
    if not compute_uv:
        return ARRAYS.svdvals(matrices)[0]
    return SVDResult(*ARRAYS.svd(matrices, bool(full_matrices))[:3])


@jax.jit
def svdvals(x: Any, /) -> jax.Array:
    """Singular values, as `jax.numpy.linalg.svdvals`.

    Parameters
    ----------
    x : array, shape (..., m, n)
        Matrices that `svd` takes.

    Returns
    -------
    jax.Array, shape (..., min(m, n))
        In descending order; NaN where a matrix is not finite.

    Raises
    ------
    ValueError
        When `x` is no matrix.

    See Also
    --------
    svd : Singular vectors too.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from pyblasgpu.jax import svdvals
    >>> svdvals(jnp.array([[1.0, 0.0], [0.0, 2.0]]))
    Array([2., 1.], dtype=float32)
    """
    values: jax.Array = svd(x, compute_uv=False)
    return values


@partial(jax.jit, static_argnames=("hermitian",))
def _pinv(a: Any, rtol: Any, hermitian: bool) -> jax.Array:
    matrices = _matrices("pinv", a)
    if matrices is None:
        return jnp.linalg.pinv(a, rtol, hermitian)
    if hermitian:
        check_square("pinv", "a", matrices)
    real = matrices.real.dtype
    if rtol is None:
        rtol = 10.0 * max(matrices.shape[-2:]) * jnp.finfo(real).eps
    bounds = jnp.zeros((), real), jnp.asarray(rtol, real)
    inverse: jax.Array = ARRAYS.pinv(matrices, *bounds, hermitian)[0]
    return inverse


def pinv(a: Any, rtol: Any = None, hermitian: bool = False, *, rcond: Any = None) -> jax.Array:
    """Pseudoinverse, as `jax.numpy.linalg.pinv`.

    Parameters
    ----------
    a : array, shape (..., m, n)
        Matrices that `svd` takes, or `eigh` where they are `hermitian`.
    rtol : float or array, optional
        Singular values up to `rtol` times the largest of them count as zero. By default it is the roundoff
        times ten times the larger extent.
    hermitian : bool, default False
        Whether the matrices are Hermitian; the lower triangles are read.
    rcond : float or array, optional
        `rtol`, by another name.

    Returns
    -------
    jax.Array, shape (..., n, m)

    Raises
    ------
    ValueError
        When `a` is no matrix, or both `rtol` and `rcond` are passed.

    See Also
    --------
    svd : The singular values.
    matrix_rank : How many of them count.

    Notes
    -----
    Gradients are those of constant rank, and are finite where singular values are equal or zero.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from pyblasgpu.jax import pinv
    >>> pinv(jnp.array([[2.0, 0.0], [0.0, 0.0]]))
    Array([[0.5, 0. ],
           [0. , 0. ]], dtype=float32)
    """
    if rtol is not None and rcond is not None:
        raise ValueError("pinv: rtol and rcond exclude each other")
    return _pinv(a, rcond if rtol is None else rtol, hermitian=bool(hermitian))


@partial(jax.jit, static_argnames=("hermitian",))
def _matrix_rank(M: Any, rtol: Any, hermitian: bool) -> jax.Array:
    operands = promoted(M)
    if operands is None or operands[0].ndim < 2:
        return jnp.linalg.matrix_rank(M, rtol, hermitian=hermitian)
    (M,) = operands
    sizes = jnp.abs(eigvalsh(M)) if hermitian else svdvals(M)
    if rtol is None:
        eps = jnp.finfo(sizes.dtype).eps
        rtol = sizes.max(-1, initial=0) * np.asarray(max(M.shape[-2:]) * eps, sizes.dtype)
    return (sizes > jnp.expand_dims(jnp.asarray(rtol), -1)).sum(-1)


def matrix_rank(M: Any, rtol: Any = None, *, hermitian: bool = False, tol: Any = None) -> jax.Array:
    """Rank of matrices, the number of singular values that count, as `jax.numpy.linalg.matrix_rank`.

    Parameters
    ----------
    M : array, shape (..., m, n)
        Matrices that `svdvals` takes, or `eigvalsh` where they are `hermitian`.
    rtol : float or array, optional
        The value up to which singular values count as zero. By default it is the largest of them times the
        larger extent and the roundoff.
    hermitian : bool, default False
        Whether the matrices are Hermitian.
    tol : float or array, optional
        `rtol`, by another name.

    Returns
    -------
    jax.Array of integers, shape (...)

    Raises
    ------
    ValueError
        When both `rtol` and `tol` are passed.

    See Also
    --------
    svdvals : The singular values.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from pyblasgpu.jax import matrix_rank
    >>> matrix_rank(jnp.ones((3, 3)))
    Array(1, dtype=int32)
    """
    if rtol is not None and tol is not None:
        raise ValueError("matrix_rank: rtol and tol exclude each other")
    return _matrix_rank(M, tol if rtol is None else rtol, hermitian=bool(hermitian))
