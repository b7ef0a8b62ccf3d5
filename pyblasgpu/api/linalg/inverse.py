"""Inverses with SciPy's signature: inv."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arguments import Array, Flag
from ...dispatch.overrides import in_mode
from ...frontend.calls.factor_chain import repeat_chain
from ...types import Uplo, tensor_method
from ..lapack import at_once
from ..lapack import names as lapack
from ..lapack.call import AfterOverwriting
from .arrays import Arrays, taken
from .checks import check_values, is_checked, raise_singular
from .condition import Conditions
from .docs import documented
from .host import invert_definite, invert_general
from .host_symmetric import invert_symmetric, is_symmetric
from .solve import matrix_solution
from .structures import STRUCTURES, mirror, mirrored, square, with_both_triangles

__all__ = ["inv", "inverse_of"]


@documented
def inv(
    a: Array,
    overwrite_a: Flag = False,
    check_finite: Flag = None,
    *,
    assume_a: str | None = None,
    lower: Flag = False,
    method: str | None = None,
) -> Array:
    """Inverse of a matrix, as `scipy.linalg.inv`.

    Parameters
    ----------
    overwrite_a : bool, default False
        Whether `a` may be overwritten: one host matrix by columns then holds the inverse.
    check_finite : bool, optional
        Whether to look for Inf and NaN, and at the condition; by default that is done for host arrays alone.
    assume_a : str, optional
        The structure of `a`, by SciPy's names; see `solve`. By default general.
    lower : bool, default False
        Which triangle of `a` is read if `assume_a` is symmetric, Hermitian or positive definite.
    method : {'tensor'}, optional
        Products on tensor cores, see `pyblasgpu.gemm`. It changes nothing on the processor. SciPy has no such
        argument.

    Returns
    -------
    array, shape (..., n, n)
        The inverse.

    Raises
    ------
    numpy.linalg.LinAlgError
        When a matrix is singular, or not positive definite where that was assumed; the call waits for device
        arrays to know it.
    ValueError
        When `a` is not square, `assume_a` is unknown, or Inf or NaN was found.

    Warns
    -----
    scipy.linalg.LinAlgWarning
        When the reciprocal condition number of a matrix in the 1-norm is below the precision of its dtype.
        Device matrices are looked at with `check_finite` alone.

    See Also
    --------
    solve : More accurate than a product with the inverse, and faster.

    Examples
    --------
    >>> import numpy as np, pyblasgpu
    >>> pyblasgpu.linalg.inv(np.array([[4.0, 2.0], [2.0, 2.0]]))
    array([[ 0.5, -0.5],
           [-0.5,  1. ]])
    """
    name = "inv"
    key = (name, overwrite_a, check_finite, assume_a, lower)
    if type(a) is not np.ndarray and method is None and (done := repeat_chain(key, (a,))) is not None:
        return done.results[0]
    structure = STRUCTURES.get(assume_a, "banded")
    if structure == "banded":
        raise ValueError(f"{name}: {assume_a} is not a recognized matrix structure")
    low = Uplo.parse(lower, name, "lower") is Uplo.LOWER
    method = tensor_method(method, name)
    arrays = taken(name, {"a": a})
    if method is None:  # else the mode is set around the calls of routines, not by them
        arrays = arrays.recorded(key, (a,), check_finite)
    overwrite = arrays.may_overwrite(overwrite_a, name, "overwrite_a", arrays.each[0])
    conditions = Conditions(arrays, arrays.library.host or is_checked(arrays, check_finite, name))
    with arrays.silent():
        check_values(arrays, check_finite, name, *arrays.each)
        inverse = in_mode(method, inverse_of)(conditions, structure, low, overwrite)
        conditions.warn()
        return arrays.returned(arrays.in_scipys_order(inverse, name))


def inverse_of(conditions: Conditions, structure: str, low: bool = False, overwrite: bool = False) -> Any:
    """The inverses of the matrices of `conditions`; of host arrays by rows unless they overwrite a."""
    arrays = conditions.arrays
    (matrix,) = arrays.each
    if len(matrix.shape) < 2:
        raise ValueError(f"inv: Expected at least ndim=2, got a of shape {tuple(matrix.shape)}")
    matrix = square(arrays, matrix, "inv")
    if 0 in matrix.shape:
        return arrays.xp.zeros_like(matrix)
    out = arrays.output(matrix, overwrite)
    if structure in ("upper", "lower", "diagonal"):
        identity = arrays.xp.zeros_like(matrix) + arrays.identity(matrix.shape[-1])
        flags = structure, low, False, (overwrite and not arrays.library.host, True)
        return arrays.placed(matrix_solution(conditions, matrix, identity, *flags), out)
    is_definite = structure == "definite"
    if is_symmetric(arrays, structure, matrix):
        return _symmetric_inverse(conditions, matrix, structure == "hermitian", low, out)
    matrix = with_both_triangles(arrays, matrix, structure, low, out is not None)
    if conditions.wanted:
        norms = _definite_norms(conditions, matrix, low) if is_definite else conditions.norms(matrix)
    if is_definite:
        inverse, info = _definite_inverse(arrays, matrix, low, overwrite, out)
    else:
        inverse, info = _general_inverse(arrays, matrix, overwrite, out)
    raise_singular(arrays, info)
    arrays.kept(inverse)
    with AfterOverwriting(out is not None):
        if is_definite and arrays.library.host:
            mirror(inverse, low)
        if conditions.wanted:
            conditions.keep(norms, conditions.norms(inverse))
        return inverse


def _symmetric_inverse(conditions: Conditions, matrix: Any, hermitian: bool, low: bool, out: Any) -> Any:
    """The inverse of host matrices by L D L^H factors."""
    arrays, uplo = conditions.arrays, Uplo.LOWER if low else Uplo.UPPER
    norms = conditions.norms(matrix, uplo)
    inverse, info = invert_symmetric(matrix, uplo, hermitian and arrays.dtype.is_complex, out)
    with AfterOverwriting(out is not None):
        raise_singular(arrays, info)
        mirror(inverse, low, hermitian)
        if conditions.wanted:
            conditions.keep(norms, conditions.norms(inverse))
        return inverse


def _definite_norms(conditions: Conditions, matrix: Any, low: bool) -> Any:
    arrays = conditions.arrays
    if arrays.library.host:
        return conditions.norms(matrix, Uplo.LOWER if low else Uplo.UPPER)
    return conditions.norms(mirrored(arrays, matrix, low))


def _definite_inverse(arrays: Arrays, matrix: Any, low: bool, overwrite: bool, out: Any) -> tuple[Any, Any]:
    """The inverse by Cholesky factors, of host arrays one triangle of it, and info."""
    uplo = Uplo.LOWER if low else Uplo.UPPER
    if arrays.library.host:
        return invert_definite(matrix, arrays.dtype, uplo, out)
    factor, info = lapack.potrf(matrix, low, False, overwrite)
    inverse = at_once.definite_inverse("inv", factor, arrays.dtype, uplo)
    if inverse is None:
        inverse = mirrored(arrays, lapack.potri(factor, low, True)[0], low)
    return inverse, info


def _general_inverse(arrays: Arrays, matrix: Any, overwrite: bool, out: Any) -> tuple[Any, Any]:
    """The inverse by LU factors, and info."""
    if arrays.library.host:
        return invert_general(matrix, arrays.dtype, out)
    if not overwrite and (done := at_once.inverse("inv", matrix, arrays.dtype)) is not None:
        return done
    factors, pivots, info = lapack.getrf(matrix, overwrite)
    inverse = None if overwrite else at_once.lu_inverse("inv", factors, pivots, arrays.dtype)
    return lapack.getri(factors, pivots, overwrite_lu=True)[0] if inverse is None else inverse, info
