"""SciPy's functions of Cholesky factors: cholesky, cho_factor, cho_solve."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arguments import Array, Flag, enabled
from ...dispatch.overrides import in_mode
from ...frontend.calls.factor_chain import repeat_chain
from ...types import Uplo, tensor_method
from ..docstrings import Shared, documenting
from ..lapack import names as lapack
from .arrays import Arrays, returns_rows, taken
from .checks import check_values, raise_indefinite, solved
from .docs import LINALG, documented

__all__ = ["cho_factor", "cho_solve", "cholesky", "factor_of"]

_documented = documenting(
    Shared("""
    Parameters
    ----------
    a : array, shape (..., n, n)
        Symmetric or Hermitian matrices; one triangle is read. Leading dimensions count them.
    lower : bool or {'L', 'U'}, default False
        Which triangle of `a` is read and holds the factor: L with a = L Lᴴ, or U with a = Uᴴ U.
    check_finite : bool, optional
        Whether to look for Inf and NaN in all of `a`; by default that is done for host arrays alone.

    Raises
    ------
    numpy.linalg.LinAlgError
        When a matrix is not positive definite; the call waits for device arrays to know it.
    ValueError
        When `a` is not square, or Inf or NaN was found.
    """),
    LINALG,
)


@_documented
def cholesky(
    a: Array,
    lower: Flag = False,
    overwrite_a: Flag = False,
    check_finite: Flag = None,
    *,
    upper: Flag = None,
) -> Array:
    """Cholesky factor U of a positive definite matrix, as `scipy.linalg.cholesky`.

    NumPy's, CuPy's, PyTorch's and the array API's `cholesky` return L by default: ``upper=False`` does here.

    Parameters
    ----------
    upper : bool, optional
        The array API's flag, by which `lower` is ``not upper``.

    Returns
    -------
    array, shape (..., n, n)
        The factor, its other triangle zero.

    See Also
    --------
    cho_factor : Factor that leaves the other triangle as it was.
    pyblasgpu.lapack.potrf : Factor and `info`, without errors.
    pyblasgpu.dask.cholesky : Factor of Dask arrays.

    Notes
    -----
    Componentwise backward error about ``n u |L| |L|ᴴ``, n the order and u the unit roundoff.

    Examples
    --------
    >>> import numpy as np
    >>> from pyblasgpu import linalg
    >>> linalg.cholesky(np.array([[4.0, 2.0], [2.0, 5.0]]), lower=True)
    array([[2., 0.],
           [1., 2.]])
    """
    key = ("cholesky", lower, overwrite_a, check_finite, upper)
    if type(a) is not np.ndarray and (done := repeat_chain(key, (a,))) is not None:
        return done.results[0]
    if upper is not None:
        is_upper = enabled(upper, "cholesky", "upper")
        if is_upper and Uplo.parse(lower, "cholesky", "lower") is Uplo.LOWER:
            raise ValueError(f"cholesky: lower={lower} and upper={upper} contradict each other")
        lower = not is_upper
    return _factored("cholesky", a, lower, overwrite_a, check_finite, True, key)


@_documented
def cho_factor(
    a: Array, lower: Flag = False, overwrite_a: Flag = False, check_finite: Flag = None
) -> tuple[Array, Flag]:
    """Cholesky factor for `cho_solve`, as `scipy.linalg.cho_factor`.

    Returns
    -------
    c : array, shape (..., n, n)
        The factor in one triangle; the other one holds anything.
    lower : bool
        The flag that was passed; for stacks too, where SciPy returns an array of them.

    See Also
    --------
    cholesky : Factor whose other triangle becomes zero.
    cho_solve : Solution by the factor.

    Examples
    --------
    >>> import numpy as np
    >>> from pyblasgpu import linalg
    >>> c, lower = linalg.cho_factor(np.array([[4.0, 2.0], [2.0, 5.0]]), lower=True)
    >>> np.tril(c), lower
    (array([[2., 0.],
           [1., 2.]]), True)
    """
    key = ("cho_factor", lower, overwrite_a, check_finite)
    if type(a) is not np.ndarray and (done := repeat_chain(key, (a,))) is not None:
        return done.results[0], lower
    return _factored("cho_factor", a, lower, overwrite_a, check_finite, False, key), lower


@documented
def cho_solve(
    c_and_lower: tuple[Array, Flag],
    b: Array,
    overwrite_b: Flag = False,
    check_finite: Flag = None,
    *,
    method: str | None = None,
) -> Array:
    """Solution x of ``a x = b`` from a Cholesky factor of a, as `scipy.linalg.cho_solve`.

    Parameters
    ----------
    c_and_lower : (array of shape (..., n, n), bool)
        The result of `cho_factor` or `cholesky`; the other triangle is not read.
    check_finite : bool, optional
        Whether to look for Inf and NaN in the factor and in `b`; by default that is done for host arrays
        alone.
    method : {'tensor'}, optional
        Products on tensor cores, see `pyblasgpu.gemm`. It changes nothing on the processor. SciPy has no such
        argument.

    Returns
    -------
    array
        The solution, shaped as `b`, with the leading dimensions of both.

    Raises
    ------
    ValueError
        When the factor is not square, shapes do not fit, or Inf or NaN was found.

    See Also
    --------
    cho_factor : The factor.
    solve : Factor and solution at once, with ``assume_a='pos'``.

    Examples
    --------
    >>> import numpy as np
    >>> from pyblasgpu import linalg
    >>> a, b = np.array([[4.0, 2.0], [2.0, 5.0]]), np.array([8.0, 14.0])
    >>> linalg.cho_solve(linalg.cho_factor(a), b)
    array([0.75, 2.5 ])
    """
    name = "cho_solve"
    c, lower = c_and_lower
    key = (name, lower, overwrite_b, check_finite)
    if type(c) is not np.ndarray and method is None and (done := repeat_chain(key, (c, b))) is not None:
        return done.results[0]
    method = tensor_method(method, name)
    arrays = taken(name, {"c": c, "b": b})
    if method is None:  # else the mode is set around the calls of routines, not by them
        arrays = arrays.recorded(key, (c, b), check_finite)
    # SciPy's cho_factor of a stack gives an array of equal flags
    low = Uplo.parse(np.asarray(lower).flat[0] if np.ndim(lower) else lower, name, "lower") is Uplo.LOWER
    factor, right = arrays.each
    overwrite = arrays.may_overwrite(overwrite_b, name, "overwrite_b", right)
    with arrays.silent():
        check_values(arrays, check_finite, name, right, factor)
        if len(factor.shape) < 2 or factor.shape[-1] != factor.shape[-2]:
            shape = tuple(factor.shape)
            raise ValueError(f"{name}: The factored matrix c is not square. It has shape {shape}")
        if not right.shape or right.shape[-2:][0] != factor.shape[-1]:
            shapes = f"({tuple(factor.shape)} and {tuple(right.shape)})"
            raise ValueError(f"{name}: incompatible dimensions {shapes}")
        potrs = in_mode(method, lapack.potrs)
        return solved(arrays, factor, right, lambda c, b: potrs(c, b, low, overwrite)[0])


def _factored(
    name: str, a: Any, lower: Any, overwrite_a: Any, check_finite: Any, clean: bool, key: tuple[Any, ...]
) -> Any:
    """The factors; the call may be kept under `key`."""
    arrays = taken(name, {"a": a}).recorded(key, (a,), check_finite)
    low = Uplo.parse(lower, name, "lower") is Uplo.LOWER
    (matrix,) = arrays.each
    overwrite = arrays.may_overwrite(overwrite_a, name, "overwrite_a", matrix)
    with arrays.silent():
        check_values(arrays, check_finite, name, matrix)
        if len(matrix.shape) < 2:
            matrix = arrays.xp.reshape(matrix, (1, -1))
        if matrix.shape[-1] != matrix.shape[-2]:
            raise ValueError(
                f"{name}: Input array is expected to be square but has the shape: {tuple(matrix.shape)}."
            )
        matrix = arrays.cast(matrix)
        if 0 in matrix.shape:
            return arrays.returned(arrays.xp.zeros_like(matrix))
        by_rows = arrays.library.host and returns_rows(name)
        factor = arrays.returned(factor_of(arrays, matrix, low, clean, overwrite, by_rows))
        arrays.kept(factor)
        return factor


def factor_of(
    arrays: Arrays, matrix: Any, low: bool, clean: bool = True, overwrite: bool = False, by_rows: bool = False
) -> Any:
    """Return the factors of matrices in the dtype of the computation; new host ones `by_rows`, or by columns.

    Raises
    ------
    numpy.linalg.LinAlgError
        When a matrix is not positive definite.
    """
    if by_rows and arrays.output(matrix, overwrite) is None:
        # the factor of the transpose is by columns, and the transpose of the factor
        columns, info = lapack.potrf(matrix.swapaxes(-1, -2), not low, clean, overwrite)
        factor = columns.swapaxes(-1, -2)
    else:
        factor, info = lapack.potrf(matrix, low, clean, overwrite)
    raise_indefinite(arrays, info)
    return factor
