"""SciPy's, NumPy's and the array API's functions of singular values: svd, svdvals, and polar."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...arguments import Array, Flag, enabled, shown
from ..docstrings import Shared, documenting
from ..lapack.singular import repeated_svd
from .arrays import gemm_of, taken
from .checks import check_values
from .docs import LINALG
from .standard import matrix_or_stack, of_scipy, singular_triplets

__all__ = ["SVDResult", "polar", "svd", "svdvals"]

_DRIVERS = ("gesdd", "gesvd")

_documented = documenting(
    Shared("""
    Parameters
    ----------
    a : array, shape (..., m, n)
        The matrices; leading dimensions count them. k is the lesser of m and n.

    Raises
    ------
    numpy.linalg.LinAlgError
        When the iteration does not converge.
    """),
    LINALG,
)


class SVDResult(NamedTuple):
    """Singular vectors and singular values.

    Parameters
    ----------
    U : array
        The left singular vectors, in columns.
    S : array
        The singular values, in descending order.
    Vh : array
        The right singular vectors, conjugated, as rows.

    See Also
    --------
    svd : Returns it.

    Examples
    --------
    >>> from pyblasgpu import linalg
    >>> linalg.svd([[3.0, 0.0], [0.0, 4.0]]).S
    array([4., 3.])
    """

    U: Array
    S: Array
    Vh: Array


@_documented
def svd(
    a: Array,
    full_matrices: Flag = True,
    compute_uv: Flag = True,
    overwrite_a: Flag = False,
    check_finite: Flag = None,
    lapack_driver: str = "gesdd",
) -> Any:
    """Singular values and vectors, ``a = U diag(S) Vh``, as `scipy.linalg.svd`.

    Parameters
    ----------
    full_matrices : bool, default True
        Whether `U` and `Vh` are square; else they have k columns and k rows.
    compute_uv : bool, default True
        Whether vectors are computed; else the singular values are the only result.
    lapack_driver : {'gesdd', 'gesvd'}, default 'gesdd'
        LAPACK's routine of host arrays, by divide and conquer or by QR iteration. Device arrays have
        Jacobi's method by either name, and eigenvalues of Hermitian matrices if they are large.

    Returns
    -------
    U : array, shape (..., m, m) or (..., m, k)
        The left singular vectors, in orthonormal columns.
    S : array, shape (..., k)
        The singular values, real, not negative and descending.
    Vh : array, shape (..., n, n) or (..., k, n)
        The right singular vectors, conjugated, as orthonormal rows.

    Raises
    ------
    ValueError
        When `a` is no matrix, the driver is none, or Inf or NaN was found.

    See Also
    --------
    svdvals : Singular values alone.
    eigh : Eigenvalues of Hermitian matrices.

    Notes
    -----
    A stack in host memory goes to a device where that is the backend and kernels have the shape; the
    LAPACK of SciPy, or NumPy's for stacks, computes all else. On a device results are NaN where a matrix
    is not finite, or where the iteration does not converge. Of host matrices that are not checked, those
    with Inf have NaN as results, and NaN raises LinAlgError, as in NumPy.

    Examples
    --------
    >>> from pyblasgpu import linalg
    >>> u, s, vh = linalg.svd([[0.0, 2.0], [1.0, 0.0]])
    >>> s
    array([2., 1.])
    """
    name = "svd"
    if not isinstance(lapack_driver, str):
        raise TypeError(f"{name}: lapack_driver={shown(lapack_driver)} is no str")
    if lapack_driver not in _DRIVERS:
        raise ValueError(f"{name}: lapack_driver={shown(lapack_driver)} is none of {', '.join(_DRIVERS)}")
    full, vectors = (
        enabled(full_matrices, name, "full_matrices"),
        enabled(compute_uv, name, "compute_uv"),
    )
    u, s, vh = _triplets(name, a, overwrite_a, check_finite, full, vectors, lapack_driver)
    return SVDResult(u, s, vh) if vectors else s


@_documented
def svdvals(a: Array, overwrite_a: Flag = False, check_finite: Flag = None) -> Array:
    """Singular values of matrices, as `scipy.linalg.svdvals`.

    Returns
    -------
    array, shape (..., k)
        The singular values, real, not negative and descending.

    Raises
    ------
    ValueError
        When `a` is no matrix, or Inf or NaN was found.

    See Also
    --------
    svd : Singular vectors too.

    Examples
    --------
    >>> from pyblasgpu import linalg
    >>> linalg.svdvals([[0.0, 2.0], [1.0, 0.0]])
    array([2., 1.])
    """
    return _triplets("svdvals", a, overwrite_a, check_finite, vectors=False)[1]


@_documented
def polar(a: Array, side: str = "right") -> tuple[Array, Array]:
    """Polar factors, ``a = u p`` or ``a = p u``, by singular values, as `scipy.linalg.polar`.

    Parameters
    ----------
    side : {'right', 'left'}, default 'right'
        The side of `p`.

    Returns
    -------
    u : array, shape (..., m, n)
        Orthonormal columns, or rows where m < n.
    p : array, shape (..., n, n) or (..., m, m)
        Hermitian and positive semidefinite; of order m from the left.

    Raises
    ------
    ValueError
        When `a` is no matrix, or `side` is none.

    See Also
    --------
    svd : Singular vectors.

    Examples
    --------
    >>> from pyblasgpu import linalg
    >>> u, p = linalg.polar([[0.0, -2.0], [2.0, 0.0]])
    >>> p.round(3)
    array([[2., 0.],
           [0., 2.]])
    """
    name = "polar"
    if side not in ("right", "left"):
        raise ValueError(f"{name}: side={shown(side)} is none of right, left")
    arrays = taken(name, {"a": a})
    (matrix,) = arrays.each
    with arrays.silent():
        check_values(arrays, None, name, matrix)
        matrix_or_stack(name, "a", matrix)
        w, s, vh = singular_triplets(name, arrays, arrays.cast(matrix))
        u = gemm_of(name, w, vh, arrays.dtype)
        if side == "right":
            scaled = arrays.xp.matrix_transpose(arrays.xp.conj(vh)) * s[..., None, :]
            p = gemm_of(name, scaled, vh, arrays.dtype)
        else:
            p = gemm_of(name, w * s[..., None, :], w, arrays.dtype, trans_b="C")
        return arrays.returned(u), arrays.returned(p)


def _triplets(
    name: str,
    a: Array,
    overwrite_a: Flag,
    check_finite: Flag,
    full: bool = False,
    vectors: bool = True,
    driver: str = "gesdd",
) -> tuple[Any, Any, Any]:
    """Left vectors, values and right vectors as the caller gets them; see `singular_triplets`."""
    if check_finite is None and overwrite_a is False:
        if type(a) is not np.ndarray:
            repeated = repeated_svd(name, a, full, vectors)
            if repeated is not None:
                return repeated[:3]
        found = of_scipy("svd", a, full, vectors, lapack_driver=driver)
        if found is not None:
            return found if vectors else (None, found, None)
    arrays = taken(name, {"a": a})
    (matrix,) = arrays.each
    overwrite = arrays.may_overwrite(overwrite_a, name, "overwrite_a", matrix)
    with arrays.silent():
        check_values(arrays, check_finite, name, matrix)
        matrix_or_stack(name, "a", matrix)
        in_place = arrays.output(matrix, overwrite) is not None
        found = singular_triplets(name, arrays, arrays.cast(matrix), full, vectors, driver, in_place)
        u, s, vh = (None if each is None else arrays.returned(each) for each in found)
        return u, s, vh
